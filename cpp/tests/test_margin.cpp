#include <doctest/doctest.h>

#include "problems.hpp"
#include "taxolearn/kernels/functions.hpp"
#include "taxolearn/margin/fit.hpp"
#include "taxolearn/margin/labelings.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

/// Random rows and random sets of nodes, each with its parents; some rows have none.
struct Example {
  MatrixXd X;
  Matrix<double> rows;
  LabelForest forest;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> labels;
  MarginProblem problem;

  Example(Index n, Index d, std::vector<std::int32_t> parents, MarginLoss loss, std::uint64_t seed)
      : forest(std::move(parents)) {
    Random random(seed);
    X = random.matrix(n, d);
    rows = as_matrix(X);
    for (Index i = 0; i < n; ++i) {
      std::vector<bool> has(static_cast<std::size_t>(forest.nodes()));
      for (Index j = 0; j < forest.nodes(); ++j) {
        const bool possible = j < forest.tops() || has[static_cast<std::size_t>(forest.parent(j))];
        has[static_cast<std::size_t>(j)] = possible && random.below(2) == 0;
        if (has[static_cast<std::size_t>(j)]) labels.push_back(static_cast<std::int32_t>(j));
      }
      offsets.push_back(static_cast<std::int64_t>(labels.size()));
    }
    problem.X = DenseView<const double>(rows.view());
    problem.forest = &forest;
    problem.label_offsets = offsets.data();
    problem.labels = labels.data();
    problem.loss = loss;
    problem.cost = 0.3;
  }

  std::vector<std::int8_t> truth(Index i) const {
    std::vector<std::int8_t> signs(static_cast<std::size_t>(forest.components()), -1);
    for (std::int64_t at = offsets[i]; at < offsets[i + 1]; ++at) signs[labels[at]] = 1;
    forest.complete(signs.data());
    return signs;
  }

  double loss_of(const std::vector<std::int8_t>& y, const std::vector<std::int8_t>& own) const {
    double sum = 0.0;
    for (Index j = 0; j < forest.nodes(); ++j) {
      const bool wrong = y[j] != own[j];
      if (problem.loss == MarginLoss::zero_one && wrong) return 1.0;
      const bool parent = j < forest.tops() || y[forest.parent(j)] == own[forest.parent(j)];
      if (wrong && (problem.loss == MarginLoss::hamming || parent)) {
        sum += problem.loss == MarginLoss::hamming || problem.scales.empty() ? 1.0 : problem.scales[j];
      }
    }
    return sum;
  }

  /// The largest loss + score over all labelings.
  double best(const double* g, const std::vector<std::int8_t>& own) const {
    double largest = -std::numeric_limits<double>::infinity();
    for (unsigned bits = 0; bits < (1U << forest.nodes()); ++bits) {
      std::vector<std::int8_t> y(own.size());
      for (Index j = 0; j < forest.nodes(); ++j) y[j] = (bits >> j & 1U) != 0 ? 1 : -1;
      forest.complete(y.data());
      double score = loss_of(y, own);
      for (Index r = 0; r < forest.components(); ++r) score += g[r] * y[r];
      largest = std::max(largest, score);
    }
    return largest;
  }

  /// P by its definition (1), of weights with omega included.
  double objective(const MarginResult& result) const {
    const Index d = X.cols(), c = forest.components();
    double sum = 0.0;
    for (Index r = 0; r < c; ++r) {
      double square = 0.0;
      for (Index k = 0; k < d; ++k) square += result.weights.row(k)[r] * result.weights.row(k)[r];
      if (problem.bias > 0.0) square += std::pow(result.intercepts[r] / problem.bias, 2);
      sum += 0.5 * square / forest.omega()[r];
    }
    for (Index i = 0; i < X.rows(); ++i) {
      std::vector<double> g(result.intercepts);
      for (Index k = 0; k < d; ++k) {
        for (Index r = 0; r < c; ++r) g[r] += X(i, k) * result.weights.row(k)[r];
      }
      const std::vector<std::int8_t> own = truth(i);
      double score = 0.0;
      for (Index r = 0; r < c; ++r) score += g[r] * own[r];
      sum += problem.cost * (best(g.data(), own) - score);
    }
    return sum;
  }
};

const std::vector<std::vector<std::int32_t>> forests{{-1}, {-1, -1, -1}, {-1, 0, 1, 2}, {-1, -1, 0, 0, 1, 2, 2}};
const MarginLoss losses[] = {MarginLoss::zero_one, MarginLoss::hamming, MarginLoss::hierarchical};

}  // namespace

TEST_CASE("max-margin trees: the best labeling is the best of all") {
  Random random(0);
  for (const auto& parents : forests) {
    for (const MarginLoss loss : losses) {
      Example example(30, 2, parents, loss, 3);
      const Index k = example.forest.nodes();
      example.problem.scales.assign(static_cast<std::size_t>(k), 1.0);
      for (Index j = 0; j < k; ++j) example.problem.scales[j] = 1.0 / static_cast<double>(j + 1);
      for (Index i = 0; i < 30; ++i) {
        const MatrixXd g = random.matrix(1, example.forest.components());
        const std::vector<std::int8_t> own = example.truth(i);
        std::vector<std::int8_t> found(own.size());
        const double lost =
            best_labeling(example.forest, {loss, example.problem.scales}, g.data(), own.data(), found.data());
        CHECK(lost == doctest::Approx(example.loss_of(found, own)));
        double score = lost;
        for (Index r = 0; r < g.cols(); ++r) score += g(0, r) * found[r];
        CHECK(score == doctest::Approx(example.best(g.data(), own)));
      }
    }
  }
}

TEST_CASE("max-margin trees: objective and gap are what they say, and the dual never falls") {
  for (const auto& parents : forests) {
    for (const MarginLoss loss : losses) {
      Example example(25, 4, parents, loss, 1);
      MarginDuals exact;
      const double least = fit_margin(example.problem, {1e-9, 100000, 0}, exact, one).run.objective;
      double dual = 0.0;
      for (const int iterations : {1, 2, 3, 5, 8, 13, 100}) {
        MarginDuals duals;
        const MarginResult found = fit_margin(example.problem, {1e-6, iterations, 0}, duals, one);
        CHECK(found.run.objective == doctest::Approx(example.objective(found)).epsilon(1e-10));
        CHECK(found.run.objective - found.run.gap <= least * (1 + 1e-9));
        CHECK(found.run.objective >= least * (1 - 1e-8));
        CHECK(found.run.objective - found.run.gap >= dual - 1e-9 * least);
        dual = found.run.objective - found.run.gap;
      }
    }
  }
}

TEST_CASE("max-margin trees: a linear kernel is what weights are, on any number of threads, from any start") {
  Example example(150, 5, forests[3], MarginLoss::hamming, 2);
  MarginDuals duals, again, doubled;
  const MarginResult found = fit_margin(example.problem, {1e-6, 10000, 7}, duals, one);
  CHECK(found.run.status == Status::converged);
  const MarginResult parallel = fit_margin(example.problem, {1e-6, 10000, 7}, again, two);
  CHECK(identical(dense(found.weights.view()), dense(parallel.weights.view())));

  const auto kernel = make_linear_kernel(1.0);
  example.problem.kernel = kernel.get();
  for (const double limit : {1e9, 0.0}) {
    example.problem.memory_limit = limit;
    MarginDuals other;
    const MarginResult dual = fit_margin(example.problem, {1e-6, 10000, 7}, other, two);
    CHECK(dual.run.objective == doctest::Approx(found.run.objective).epsilon(1e-5));
    const MatrixXd weights = example.X.transpose() * dense(dual.multipliers.view());
    CHECK(relative_error(weights, dense(found.weights.view())) < 1e-2);
  }
  example.problem.kernel = nullptr;

  example.problem.cost *= 2.0;
  const MarginResult cold = fit_margin(example.problem, {1e-3, 10000, 7}, doubled, one);
  const MarginResult warm = fit_margin(example.problem, {1e-3, 10000, 7}, duals, one);
  CHECK(warm.run.status == Status::converged);
  CHECK(warm.run.passes < cold.run.passes);
}

TEST_CASE("max-margin trees: bad input is named") {
  Example example(10, 2, forests[3], MarginLoss::hamming, 0);
  const auto message = [&] {
    MarginDuals duals;
    return rejection([&] { fit_margin(example.problem, {}, duals, one); });
  };
  example.problem.cost = -1.0;
  CHECK(contains(message(), "C is -1"));
  example.problem.cost = 1.0;
  example.problem.scales = {1.0};
  CHECK(contains(message(), "scales has 1 elements"));
  example.problem.scales.clear();
  example.labels.assign(example.labels.size(), 6);
  example.problem.labels = example.labels.data();
  CHECK(contains(message(), "not its parent"));
  CHECK(contains(rejection([] { LabelForest({-1, 2, 0}); }), "node 1 has the parent 2"));
}
