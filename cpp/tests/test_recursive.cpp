#include <doctest/doctest.h>

#include "taxolearn/recursive/fit.hpp"
#include "taxolearn/recursive/predict.hpp"
#include "trees.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

/// Random rows, about every fourth label, and some rows without any.
struct Example {
  MatrixXd X;
  Matrix<double> rows;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> labels;
  RecursiveProblem problem;

  Example(Index n, Index d, const Taxonomy* taxonomy, Index classes, Hinge loss, std::uint64_t seed) {
    Random random(seed);
    X = random.matrix(n, d);
    rows = as_matrix(X);
    for (Index i = 0; i < n; ++i) {
      for (Index c = 0; c < classes; ++c) {
        if (random.below(4) == 0) labels.push_back(static_cast<std::int32_t>(c));
      }
      offsets.push_back(static_cast<std::int64_t>(labels.size()));
    }
    problem.X = DenseView<const double>(rows.view());
    problem.classes = classes;
    problem.label_offsets = offsets.data();
    problem.labels = labels.data();
    problem.taxonomy = taxonomy;
    problem.loss = loss;
    problem.cost = 0.3;
  }

  bool has(Index i, Index c) const {
    return std::find(labels.begin() + offsets[i], labels.begin() + offsets[i + 1], c) !=
           labels.begin() + offsets[i + 1];
  }

  /// P by its definition, of w_n - w_parent(n) per node.
  double objective(const std::vector<SparseColumn>& weights) const {
    const Index d = X.cols(), nodes = static_cast<Index>(weights.size());
    MatrixXd W = MatrixXd::Zero(nodes, d + 1);
    for (Index node = 0; node < nodes; ++node) {
      for (std::size_t k = 0; k < weights[node].indices.size(); ++k)
        W(node, weights[node].indices[k]) = weights[node].values[k];
    }
    double sum = 0.5 * W.squaredNorm();
    MatrixXd full = W;
    for (Index node = 1; problem.taxonomy != nullptr && node < nodes; ++node)
      full.row(node) += full.row(problem.taxonomy->parent(node));
    for (Index i = 0; i < X.rows(); ++i) {
      for (Index c = 0; c < problem.classes; ++c) {
        const Index node = nodes - problem.classes + c;
        const double u = X.row(i).dot(full.row(node).head(d)) + problem.bias * full(node, d);
        const double slack = std::max(0.0, has(i, c) ? 1.0 - u : 1.0 + u);
        sum += problem.cost * (problem.loss == Hinge::hinge ? slack : slack * slack);
      }
    }
    return sum;
  }
};

RecursiveSettings settings_of(RecursiveMethod method, double tolerance) {
  RecursiveSettings settings;
  settings.method = method;
  settings.tolerance = tolerance;
  settings.max_iterations = 20000;
  return settings;
}

}  // namespace

TEST_CASE("recursive regularization: objective and gap are what they say, both methods agree") {
  for (const Hinge loss : {Hinge::hinge, Hinge::squared}) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      CAPTURE(seed);
      const Taxonomy taxonomy(
          random_parents(5 + 15 * static_cast<Index>(seed), 1 + 3 * static_cast<Index>(seed), seed));
      const Example example(12, 3, &taxonomy, taxonomy.classes(), loss, seed);
      const RecursiveResult exact =
          fit_recursive(example.problem, settings_of(RecursiveMethod::joint, 1e-7), nullptr, one);
      REQUIRE(exact.status == Status::converged);
      CHECK(exact.objective == doctest::Approx(example.objective(exact.weights)).epsilon(1e-12));
      for (const RecursiveMethod method : {RecursiveMethod::joint, RecursiveMethod::alternating}) {
        const RecursiveResult rough = fit_recursive(example.problem, settings_of(method, 1e-3), nullptr, two);
        CHECK(rough.status == Status::converged);
        CHECK(rough.gap <= 1e-3 * rough.objective);
        CHECK(rough.objective - exact.objective <= rough.gap + 1e-9 * exact.objective);
        CHECK(rough.objective == doctest::Approx(example.objective(rough.weights)).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("recursive regularization: the same bits for any number of threads") {
  const Taxonomy taxonomy(random_parents(120, 40, 1));
  for (const Taxonomy* tree : {&taxonomy, static_cast<const Taxonomy*>(nullptr)}) {
    const Example example(20, 4, tree, taxonomy.classes(), Hinge::hinge, 2);
    const RecursiveSettings settings = settings_of(RecursiveMethod::joint, 1e-3);
    const RecursiveResult a = fit_recursive(example.problem, settings, nullptr, one);
    const RecursiveResult b = fit_recursive(example.problem, settings, nullptr, two);
    CHECK(a.gap == b.gap);
    for (Index c = 0; c < taxonomy.classes(); ++c) CHECK(a.duals[c].values == b.duals[c].values);
  }
}

TEST_CASE("recursive regularization: a warm start at the answer is the answer") {
  const Example example(20, 4, nullptr, 20, Hinge::squared, 3);
  const RecursiveSettings settings = settings_of(RecursiveMethod::joint, 1e-4);
  const RecursiveResult first = fit_recursive(example.problem, settings, nullptr, one);
  const RecursiveResult again = fit_recursive(example.problem, settings, &first.duals, one);
  CHECK(again.passes < 0.5 * first.passes);
  CHECK(again.objective == doctest::Approx(first.objective).epsilon(2e-4));
}

TEST_CASE("recursive regularization: bad input is named") {
  Example example(5, 2, nullptr, 3, Hinge::hinge, 4);
  const auto fit = [&] { fit_recursive(example.problem, {}, nullptr, one); };
  example.problem.cost = -1.0;
  CHECK(rejection(fit) == "C is -1, expected a finite number above zero");
  example.problem.cost = 1.0;
  example.problem.variances = {1.0};
  CHECK(rejection(fit) == "variances has 1 elements, expected 3");
  example.problem.variances.clear();
  example.labels[0] = 3;
  CHECK(rejection(fit).find("has the label 3, expected 0 to 2") != std::string::npos);
}

TEST_CASE("recursive regularization: a tree as a graph has the same objective") {
  const Taxonomy star({-1, 0, 0, 0});
  // sum_n |w_n - w_parent(n)|^2 of a root and three leaves.
  NodePrecision precision;
  precision.offsets = {0, 4, 6, 8, 10};
  precision.columns = {0, 1, 2, 3, 0, 1, 0, 2, 0, 3};
  precision.values = {4, -1, -1, -1, -1, 1, -1, 1, -1, 1};
  precision.class_nodes = {1, 2, 3};
  Example example(20, 3, &star, 3, Hinge::squared, 5);
  const RecursiveResult tree = fit_recursive(example.problem, settings_of(RecursiveMethod::joint, 1e-8), nullptr, one);
  example.problem.taxonomy = nullptr;
  example.problem.graph = &precision;
  for (const RecursiveMethod method : {RecursiveMethod::joint, RecursiveMethod::alternating}) {
    const RecursiveResult graph = fit_recursive(example.problem, settings_of(method, 1e-8), nullptr, two);
    CHECK(graph.status == Status::converged);
    CHECK(graph.weights.size() == 3);
    CHECK(graph.objective == doctest::Approx(tree.objective).epsilon(1e-7));
  }
  precision.values[0] = 1.0;
  CHECK(rejection([&] { fit_recursive(example.problem, {}, nullptr, one); }).find("not positive definite") !=
        std::string::npos);
}
