#include <doctest/doctest.h>

#include "problems.hpp"
#include "taxolearn/couplings/tree.hpp"
#include "taxolearn/fit/choose.hpp"
#include "taxolearn/fit/fit.hpp"
#include "taxolearn/kernels/functions.hpp"
#include "taxolearn/likelihood/softmax.hpp"
#include "taxolearn/solver/lbfgs.hpp"
#include "trees.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

/// Labels by a linear rule, so that huge variances make a hard problem.
struct Flat {
  Inputs inputs;
  std::vector<std::int32_t> labels;
  Softmax likelihood;
  Problem problem;

  Flat(Index rows, Index features, Index classes, double variance)
      : inputs(rows, features, 4, 1),
        labels(Random(2).labels(rows, classes)),
        likelihood(labels.data(), rows, classes, nullptr) {
    problem.X = inputs.views[2];
    problem.likelihood = &likelihood;
    problem.prior.variance = variance;
  }
};

}  // namespace

TEST_CASE("the method follows from the memory granted") {
  const Flat example(60, 16, 3, 1.0);
  FitSettings settings;
  const FitPlan plan = choose(example.problem, settings);
  CHECK(plan.method == Method::lbfgs);
  CHECK(contains(plan.reason, "lbfgs, because the vectors of lbfgs take up to"));
  settings.memory_limit = lbfgs_bytes(example.problem, plan.space, plan.history);
  CHECK(choose(example.problem, settings).method == Method::lbfgs);
  settings.memory_limit -= 1.0;
  CHECK(choose(example.problem, settings).method == Method::nonlinear_cg);
  CHECK(contains(fit(example.problem, settings, Start(), one).reason, "more than memory_limit"));
  settings.method = Method::newton;
  CHECK(choose(example.problem, settings).reason == "newton was asked for");
}

TEST_CASE("vectors of weights have a number per feature and node, not per class") {
  const Index nodes = 25;
  const auto taxonomy = std::make_shared<const Taxonomy>(random_parents(nodes, 6, 5));
  const TreeCoupling tree(taxonomy, random_variances(nodes, 6));
  Flat example(400, 5, taxonomy->classes(), 1.0);
  const int history = 3;
  const double slots = lbfgs_slots(history) + 1;
  const double flat = lbfgs_bytes(example.problem, Space::weights, history);
  CHECK(flat == 8.0 * slots * static_cast<double>(5 * taxonomy->classes() + taxonomy->classes()));
  example.problem.prior.coupling = &tree;
  CHECK(lbfgs_bytes(example.problem, Space::weights, history) ==
        8.0 * slots * static_cast<double>(5 * (nodes - 1) + taxonomy->classes()));
  // In the other space there is a number per row and class, twice, whatever the tree.
  CHECK(lbfgs_bytes(example.problem, Space::coefficients, history) ==
        8.0 * 2 * lbfgs_slots(history) * static_cast<double>(400 * taxonomy->classes()));
}

TEST_CASE("narrow dense blocks take a slot more for coefficients, whose fits may have a preconditioner") {
  const Inputs words(60, 100, 4, 1), numbers(60, 3, 3, 2);
  Flat example(60, 16, 3, 1.0);
  const auto bytes = [&](const InputView& X) {
    example.problem.X = X;
    return lbfgs_bytes(example.problem, Space::coefficients, 3) / (8.0 * 2 * 60 * 3);
  };
  CHECK(bytes(words.views[0]) == lbfgs_slots(3));
  CHECK(bytes(side_by_side({words.views[0], words.views[0]})) == lbfgs_slots(3));
  CHECK(bytes(side_by_side({words.views[0], numbers.views[5]})) == lbfgs_slots(3) + 1);
}

TEST_CASE("the features serve where the kernel is linear and nothing else was asked for") {
  const std::vector<std::shared_ptr<const Kernel>> linear{make_linear_kernel(2.0)};
  const std::vector<std::shared_ptr<const Kernel>> rbf{make_stationary_kernel(StationaryForm::rbf, {1.0}, 1.0)};
  const std::vector<std::shared_ptr<const Kernel>> cosine{make_cosine_kernel(1.0)};
  KernelSettings settings;
  CHECK(uses_features({}, settings));
  CHECK(uses_features(linear, settings));
  CHECK_FALSE(uses_features(rbf, settings));
  CHECK_FALSE(uses_features(cosine, settings));
  settings.algorithm = KernelAlgorithm::gram;
  CHECK_FALSE(uses_features(linear, settings));
  CHECK(make_kernel_settings(KernelAlgorithm::automatic, 1e9, 5, {}).algorithm == KernelAlgorithm::low_rank);
  CHECK(make_kernel_settings(KernelAlgorithm::automatic, 1e9, 5, {}).tolerance == 0.0);
  CHECK(make_kernel_settings(KernelAlgorithm::automatic, 1e9, {}, 0.1).rank == 0);
  CHECK(make_kernel_settings(KernelAlgorithm::automatic, 1e9, {}, {}).algorithm == KernelAlgorithm::automatic);
}

TEST_CASE("exact steps finish what iterations do not, and say so") {
  Flat example(200, 2, 3, 1.0);  // labels at random: iterations take long to fit them all
  const std::vector<std::shared_ptr<const Kernel>> kernels{make_stationary_kernel(StationaryForm::rbf, {1.0}, 1e4)};
  const KernelPrior prior(kernels, {}, nullptr, 1.0, example.problem.X, KernelSettings());
  example.problem.prior = prior.get();
  FitSettings settings;
  const FitResult finished = fit(example.problem, settings, Start(), one);
  settings.exact_fallback = false;
  const FitResult left = fit(example.problem, settings, Start(), one);
  REQUIRE(left.status != Status::converged);
  CHECK(left.method == Method::lbfgs);
  CHECK(finished.status == Status::converged);
  CHECK(finished.method == Method::exact);
  CHECK(contains(finished.reason, "exact, because lbfgs was at a relative gap of"));
  CHECK(finished.iterations > left.iterations);
  CHECK(finished.objective <= left.objective);
  settings.exact_fallback = true;
  settings.method = Method::lbfgs;  // asked for, so it stays
  CHECK(fit(example.problem, settings, Start(), one).method == Method::lbfgs);
}
