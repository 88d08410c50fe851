#include <doctest/doctest.h>

#include "softmax_example.hpp"
#include "taxolearn/fit/certificate.hpp"
#include "taxolearn/fit/choose.hpp"
#include "taxolearn/fit/fit.hpp"
#include "taxolearn/fit/predict.hpp"
#include "taxolearn/fit/spaces.hpp"
#include "trees.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

/// A hierarchical problem and its dense self.
struct Example : SoftmaxExample {
  std::shared_ptr<const Taxonomy> taxonomy;
  TiedVariances tied;
  TreeCoupling coupling;
  CoupledProblem oracle;

  Example(Index rows, Index cols, Index nodes, double intercept_variance, int view)
      : Example(std::make_shared<const Taxonomy>(random_parents(nodes, 6, 5)), rows, cols, intercept_variance, view) {}

  Example(std::shared_ptr<const Taxonomy> tree, Index rows, Index cols, double intercept_variance, int view)
      : SoftmaxExample(rows, cols, tree->classes(), 1.5, intercept_variance, view),
        taxonomy(std::move(tree)),
        tied(random_variances(taxonomy->nodes(), 6)),
        coupling(taxonomy, tied),
        oracle(in_dense_algebra(), dense_root(*taxonomy, tied)) {
    problem.prior.coupling = &coupling;
  }

  Index classes() const { return taxonomy->classes(); }

  /// u = K alpha is u = A w with w = A^T alpha.
  VectorXd weights_of(const MatrixXd& alpha) const { return oracle.A.transpose() * oracle.flattened(alpha); }

  MatrixXd predictors(const FitResult& result) const {
    MatrixXd u = inputs.X * dense(result.weights.view());
    for (Index c = 0; c < u.cols(); ++c) u.col(c).array() += result.intercepts[c];
    return u;
  }
};

}  // namespace

TEST_CASE("hierarchical fits: all methods, spaces and precisions come to the same certified minimum") {
  for (const double intercept_variance : {0.0, 3.0}) {
    for (const int view : {2, 5}) {
      const Example example(40, 12, 11, intercept_variance, view);
      const VectorXd solution = example.oracle.minimizer();
      const double minimum = example.oracle.objective(solution);
      for (const Choice& choice : choices) {
        for (const Precision precision : {Precision::single, Precision::double_}) {
          CAPTURE(intercept_variance);
          CAPTURE(view);
          CAPTURE(static_cast<int>(choice.method));
          CAPTURE(static_cast<int>(choice.space));
          const double tolerance = precision == Precision::single ? 1e-7 : 1e-11;
          const FitResult result = fit(example.problem, settings_of(choice, precision, tolerance), Start(), two);
          CHECK(result.status == Status::converged);
          CHECK(result.objective - minimum <= result.gap + 1e-12 * minimum);
          CHECK(result.objective >= minimum * (1.0 - 1e-12));
          CHECK(relative_error(example.predictors(result), example.oracle.predictors(solution)) <
                10.0 * std::sqrt(tolerance));
          if (choice.method == Method::newton) CHECK(result.iterations <= 8);
        }
      }
    }
  }
}

TEST_CASE("the certificate of a hierarchical model, at any point in either space") {
  for (const double intercept_variance : {0.0, 3.0}) {
    for (const int view : {0, 1, 2, 3, 4, 5}) {
      const Example example(40, 12, 25, intercept_variance, view);
      const MatrixXd alpha = Random(7).matrix(40, example.classes());
      const VectorXd w = example.weights_of(alpha);
      FitResult of_coefficients, of_weights;
      certify(example.problem, as_matrix(alpha), of_coefficients, two);
      certify(example.problem, Buffer<double>(w.data(), w.data() + w.size()), of_weights, two);
      for (const FitResult* result : {&of_coefficients, &of_weights}) {
        CHECK(relative_error(example.predictors(*result), example.oracle.predictors(w)) < 1e-13);
        CHECK(result->objective == doctest::Approx(example.oracle.objective(w)).epsilon(1e-12));
        CHECK(result->gap == doctest::Approx(0.5 * example.oracle.gradient(w).squaredNorm()).epsilon(1e-11));
      }
      const Buffer<double> converted = weights_of(example.problem, as_matrix(alpha), two);
      CHECK(relative_error(Eigen::Map<const VectorXd>(converted.data(), w.size()), w) < 1e-13);
    }
  }
}

TEST_CASE_TEMPLATE("both spaces under a coupling do what dense weights do", T, float, double) {
  const double error = sizeof(T) == sizeof(float) ? 3e-5 : 1e-11;
  const Example example(37, 20, 17, 2.0, 2);
  const CoupledProblem& oracle = example.oracle;
  const MatrixXd alpha = 0.3 * Random(4).matrix(37, example.classes());
  const VectorXd w = example.weights_of(alpha);
  const auto check = [&](PredictorSpace<T>& space) {
    CHECK(space.advance(0.0, 0) == doctest::Approx(oracle.objective(w)).epsilon(error));
    const VectorXd g = oracle.gradient(w);
    CHECK(space.inner(0, {0})[0] == doctest::Approx(g.squaredNorm()).epsilon(error));
    space.combine({-0.7, 0.0}, 1);
    for (const double step : {0.0, 0.3}) {
      const VectorXd moved = w - 0.7 * step * g;
      CHECK(space.line(step).value == doctest::Approx(oracle.objective(moved)).epsilon(error));
      CHECK(std::abs(space.line(step).slope + 0.7 * oracle.gradient(moved).dot(g)) < error * g.squaredNorm());
    }
    CHECK(space.advance(0.3, 0) == doctest::Approx(oracle.objective(w - 0.21 * g)).epsilon(error));
    CHECK(relative_error(dense(space.predictors().view()), oracle.predictors(w - 0.21 * g)) < error);
  };
  FitResult result;
  CoefficientSpace<T> coefficients(example.problem, 2, two, result);
  coefficients.start(as_matrix(alpha));
  check(coefficients);
  WeightSpace<T> weights(example.problem, 2, two, result);
  weights.start(Buffer<double>(w.data(), w.data() + w.size()));
  check(weights);
}

TEST_CASE("a hierarchical fit gives the same bits on two threads, and starts well from a solution") {
  const Example example(900, 40, 60, 2.0, 2);
  for (const Choice& choice : choices) {
    FitSettings settings = settings_of(choice, Precision::double_, 1e-6);
    const FitResult serial = fit(example.problem, settings, Start(), one);
    const FitResult parallel = fit(example.problem, settings, Start(), two);
    CHECK(identical(dense(serial.weights.view()), dense(parallel.weights.view())));
    CHECK(serial.gap == parallel.gap);
    std::vector<double> weights(serial.weights.data(), serial.weights.data() + serial.weights.size());
    weights.insert(weights.end(), serial.intercepts.begin(), serial.intercepts.end());
    Start start;
    start.weights = weights.data();
    settings.tolerance = 1e-5;
    CHECK(fit(example.problem, settings, start, one).iterations * 3 <= serial.iterations);
  }
}

TEST_CASE("the space counts nodes, not classes") {
  const Example example(40, 30, 25, 1.0, 2);
  Problem flat = example.problem;
  flat.prior.coupling = nullptr;
  const Index classes = example.classes(), nodes = example.taxonomy->nodes() - 1;
  REQUIRE(30 * nodes >= 40 * classes);
  CHECK(choose_space(flat, FitSettings()) == Space::weights);
  CHECK(choose_space(example.problem, FitSettings()) == Space::coefficients);
}

TEST_CASE("no inner variance is a flat model") {
  const Example example(40, 12, 25, 1.0, 2);
  TiedVariances leaves_only = example.tied;
  for (Index p = 0; p < example.taxonomy->inner(); ++p) leaves_only.variances[p] = 0.0;
  TiedVariances classes;
  classes.variances.assign(leaves_only.variances.begin() + example.taxonomy->inner(), leaves_only.variances.end());
  const TreeCoupling tree(example.taxonomy, leaves_only);
  const IndependentCoupling flat(classes);
  for (const Choice& choice : choices) {
    Problem problem = example.problem;
    problem.prior.coupling = &tree;
    const FitResult a = fit(problem, settings_of(choice, Precision::double_, 1e-12), Start(), one);
    problem.prior.coupling = &flat;
    const FitResult b = fit(problem, settings_of(choice, Precision::double_, 1e-12), Start(), one);
    CHECK(a.objective == doctest::Approx(b.objective).epsilon(1e-11));
    CHECK(relative_error(example.predictors(a), example.predictors(b)) < 1e-5);
  }
  Problem problem = example.problem;
  const IndependentCoupling wrong({{1.0, 1.0}, {}});
  problem.prior.coupling = &wrong;
  CHECK(
      contains(rejection([&] { fit(problem, FitSettings(), Start(), one); }), "the coupling has 2 classes, expected"));
}
