#include <doctest/doctest.h>

#include "softmax_example.hpp"
#include "taxolearn/fit/certificate.hpp"
#include "taxolearn/fit/choose.hpp"
#include "taxolearn/fit/fit.hpp"
#include "taxolearn/fit/newton.hpp"
#include "taxolearn/fit/predict.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

/// A problem, its dense self, and its minimum where that is asked for.
struct Example : SoftmaxExample {
  DenseProblem oracle;

  Example(Index rows, Index cols, Index classes, double variance, double intercept_variance, int view)
      : SoftmaxExample(rows, cols, classes, variance, intercept_variance, view), oracle(in_dense_algebra()) {}

  double minimum() const { return oracle.objective(oracle.minimizer()); }

  /// W with u = Z W, from a result's weights and intercepts.
  MatrixXd dense_weights(const FitResult& result) const {
    MatrixXd W = MatrixXd::Zero(oracle.Z.cols(), oracle.Y.cols());
    W.topRows(W.rows() - 1) = dense(result.weights.view()) / std::sqrt(problem.prior.variance);
    if (problem.prior.intercept_variance == 0.0) return W;
    for (Index c = 0; c < W.cols(); ++c)
      W(W.rows() - 1, c) = result.intercepts[c] / std::sqrt(problem.prior.intercept_variance);
    return W;
  }
};

std::vector<double> as_start(const FitResult& result) {
  std::vector<double> start(result.weights.data(), result.weights.data() + result.weights.size());
  start.insert(start.end(), result.intercepts.begin(), result.intercepts.end());
  return start;
}

}  // namespace

TEST_CASE("all methods, spaces and precisions come to the same minimum with a true certificate") {
  for (const double intercept_variance : {0.0, 3.0}) {
    for (const int view : {0, 1, 2, 3, 4, 5}) {
      const Example example(60, 16, 3, 2.0, intercept_variance, view);
      const double minimum = example.minimum();
      for (const Choice& choice : choices) {
        for (const Precision precision : {Precision::single, Precision::double_, Precision::automatic}) {
          CAPTURE(intercept_variance);
          CAPTURE(view);
          CAPTURE(static_cast<int>(choice.method));
          CAPTURE(static_cast<int>(choice.space));
          CAPTURE(static_cast<int>(precision));
          const double tolerance = precision == Precision::single ? 1e-7 : 1e-10;
          const FitResult result = fit(example.problem, settings_of(choice, precision, tolerance), Start(), one);
          CHECK(result.status == Status::converged);
          CHECK(result.relative_gap <= tolerance);
          CHECK(result.relative_gap == result.gap / result.objective);
          CHECK(result.space == (choice.space == Space::weights ? Space::weights : Space::coefficients));
          CHECK(result.precision == (precision == Precision::single ? Precision::single : Precision::double_));
          CHECK(result.iterations > 0);
          if (choice.method == Method::newton) CHECK(result.iterations <= 8);
          CHECK(result.products >= result.iterations);
          const MatrixXd W = example.dense_weights(result);
          CHECK(result.objective == doctest::Approx(example.oracle.objective(W)).epsilon(1e-13));
          CHECK(result.objective - minimum <= result.gap + 1e-12 * minimum);
          CHECK(result.objective >= minimum * (1.0 - 1e-12));
          if (intercept_variance == 0.0) CHECK(result.intercepts == std::vector<double>(3, 0.0));
        }
      }
    }
  }
}

TEST_CASE("the certificate is the primal minus the dual value, wherever the point is") {
  for (const double intercept_variance : {0.0, 3.0}) {
    for (const int view : {0, 1, 2, 3, 4, 5}) {
      const Example example(2100, 16, 19, 2.0, intercept_variance,
                            view);  // several chunks of rows, two blocks of columns
      const DenseProblem& oracle = example.oracle;
      const MatrixXd alpha = 0.1 * Random(5).matrix(2100, 19);
      const MatrixXd W = oracle.Z.transpose() * alpha;
      const Matrix<double> weights = as_matrix(W);
      FitResult of_coefficients, of_weights;
      certify(example.problem, as_matrix(alpha), of_coefficients, two);
      certify(example.problem, Buffer<double>(weights.data(), weights.data() + weights.size()), of_weights, two);
      for (const FitResult* result : {&of_coefficients, &of_weights}) {
        CHECK(relative_error(example.dense_weights(*result), W) < 1e-13);
        CHECK(result->objective == doctest::Approx(oracle.objective(W)).epsilon(1e-13));
        CHECK(result->gap == doctest::Approx(oracle.objective(W) - oracle.dual(W)).epsilon(1e-11));
        CHECK(result->relative_gap == result->gap / result->objective);
      }
      CHECK(of_coefficients.products == 2);
      CHECK(of_weights.products == 1);
    }
  }
}

TEST_CASE("a fit gives the same bits on two threads") {
  for (const int view : {2, 5}) {
    const Example example(1200, 24, 19, 0.01, 0.01, view);
    for (const Choice& choice : choices) {
      for (const Precision precision : {Precision::single, Precision::double_}) {
        CAPTURE(view);
        CAPTURE(static_cast<int>(choice.method));
        CAPTURE(static_cast<int>(choice.space));
        FitSettings settings = settings_of(choice, precision, 1e-6);
        settings.max_iterations = 2;
        const FitResult serial = fit(example.problem, settings, Start(), one);
        const FitResult parallel = fit(example.problem, settings, Start(), two);
        CHECK(serial.iterations == parallel.iterations);
        CHECK(identical(dense(serial.weights.view()), dense(parallel.weights.view())));
        CHECK(serial.intercepts == parallel.intercepts);
        CHECK(serial.objective == parallel.objective);
        CHECK(serial.gap == parallel.gap);
      }
    }
  }
}

TEST_CASE("large problems begin in single precision and end in double where that is not enough") {
  const Example large(900, 100, 45, 0.1, 1.0, 5);  // more than four million entries times classes
  FitSettings settings;
  settings.tolerance = 1e-3;
  const FitResult rough = fit(large.problem, settings, Start(), one);
  CHECK(rough.status == Status::converged);
  CHECK(rough.precision == Precision::single);
  settings.tolerance = 1e-18;
  const FitResult fine = fit(large.problem, settings, Start(), one);
  CHECK(fine.status == Status::converged);
  CHECK(fine.precision == Precision::double_);
  CHECK(fine.iterations > rough.iterations);
  const Example small(900, 100, 44, 0.1, 1.0, 5);
  settings.max_iterations = 1;
  CHECK(fit(small.problem, settings, Start(), one).precision == Precision::double_);
}

TEST_CASE("the space is the smaller one unless it is chosen") {
  const Example tall(60, 16, 3, 1.0, 1.0, 2), wide(16, 60, 3, 1.0, 1.0, 2);
  FitSettings settings;
  CHECK(choose_space(tall.problem, settings) == Space::weights);
  CHECK(choose_space(wide.problem, settings) == Space::coefficients);
  settings.method = Method::newton;
  CHECK(choose_space(tall.problem, settings) == Space::coefficients);
  settings.method = Method::lbfgs;
  settings.space = Space::weights;
  CHECK(choose_space(wide.problem, settings) == Space::weights);
}

TEST_CASE("a fit from the solution is done at once") {
  const Example example(60, 16, 3, 2.0, 3.0, 2);
  const FitResult solution = fit(example.problem, settings_of(choices[4], Precision::double_, 1e-12), Start(), one);
  REQUIRE(solution.status == Status::converged);
  const std::vector<double> weights = as_start(solution);
  const MatrixXd alpha = -example.oracle.residual(example.oracle.Z * example.dense_weights(solution));
  const Matrix<double> coefficients = as_matrix(alpha);
  for (const Choice& choice : choices) {
    const FitSettings settings = settings_of(choice, Precision::double_, 1e-9);
    CHECK(fit(example.problem, settings, Start(), one).iterations > 2);
    Start start;
    start.weights = weights.data();
    CHECK(fit(example.problem, settings, start, one).iterations <= 2);
    start = Start();
    start.coefficients = coefficients.data();
    CHECK(fit(example.problem, settings, start, one).iterations <= 2);
  }
}

TEST_CASE("a fit goes on from the point that another one kept") {
  const Example example(60, 16, 3, 2.0, 3.0, 2);
  for (const Choice& choice : choices) {
    FitSettings settings = settings_of(choice, Precision::double_, 1e-9);
    CHECK(fit(example.problem, settings, Start(), one).point.empty());
    settings.keep_point = true;
    settings.max_iterations = 2;
    const FitResult first = fit(example.problem, settings, Start(), one);
    REQUIRE(static_cast<Index>(first.point.size()) ==
            point_size(example.problem, choose_space(example.problem, settings)));
    Start start;
    start.point = first.point.data();
    settings.max_iterations = 0;
    CHECK(fit(example.problem, settings, start, one).objective <= first.objective * (1.0 + 1e-12));
    settings.max_iterations = 1;
    CHECK(fit(example.problem, settings, start, one).objective < first.objective);
  }
}

TEST_CASE("a weight is a number of repetitions") {
  const Inputs inputs(30, 10, 3, 6);
  Random random(7);
  const std::vector<std::int32_t> labels = random.labels(30, 3);
  std::vector<double> weights(30);
  std::vector<Index> rows;
  std::vector<std::int32_t> repeated;
  for (std::size_t i = 0; i < 30; ++i) {
    weights[i] = static_cast<double>(i % 3);
    rows.insert(rows.end(), i % 3, static_cast<Index>(i));
    repeated.insert(repeated.end(), i % 3, labels[i]);
  }
  const Padded<double> X(inputs.X(rows, Eigen::all));
  const Softmax weighted(labels.data(), 30, 3, weights.data());
  const Softmax plain(repeated.data(), static_cast<Index>(repeated.size()), 3, nullptr);
  for (const Choice& choice : choices) {
    const FitSettings settings = settings_of(choice, Precision::double_, 1e-13);
    const FitResult a = fit(Problem{inputs.sparse(), &weighted, Prior{1.5}}, settings, Start(), one);
    const FitResult b = fit(Problem{X.view(), &plain, Prior{1.5}}, settings, Start(), one);
    CHECK(a.objective == doctest::Approx(b.objective).epsilon(1e-12));
    CHECK(relative_error(dense(a.weights.view()), dense(b.weights.view())) < 1e-5);
  }
}

TEST_CASE("soft targets, and one-hot ones like labels") {
  const Inputs inputs(40, 10, 3, 8);
  Random random(9);
  const std::vector<std::int32_t> labels = random.labels(40, 3);
  const Softmax labelled(labels.data(), 40, 3, nullptr);
  const Padded<double> hard(one_hot(labels, 3));
  const MatrixXd Y = random.targets(40, 3);
  const Padded<double> soft(Y);
  const Softmax one_hot_targets(hard.view(), nullptr), soft_targets(soft.view(), nullptr);
  const DenseProblem oracle(inputs.X, Y, VectorXd::Ones(40), 1.5, 1.0);
  for (const Choice& choice : choices) {
    const FitSettings settings = settings_of(choice, Precision::double_, 1e-11);
    const auto objective = [&](const Softmax& likelihood) {
      return fit(Problem{inputs.sparse(), &likelihood, Prior{1.5}}, settings, Start(), one).objective;
    };
    CHECK(objective(labelled) == doctest::Approx(objective(one_hot_targets)).epsilon(1e-10));
    CHECK(objective(soft_targets) == doctest::Approx(oracle.objective(oracle.minimizer())).epsilon(1e-10));
  }
}

TEST_CASE("a fit with nothing to learn has converged") {
  const Inputs inputs(20, 10, 3, 10);
  const std::vector<std::int32_t> labels(20, 0);
  const std::vector<double> zeros(20, 0.0);
  const Softmax single_class(labels.data(), 20, 1, nullptr), weightless(labels.data(), 20, 2, zeros.data());
  for (const Choice& choice : choices) {
    for (const Softmax* likelihood : {&single_class, &weightless}) {
      const FitSettings settings = settings_of(choice, Precision::double_, 1e-6);
      const FitResult result = fit(Problem{inputs.sparse(), likelihood, Prior{}}, settings, Start(), one);
      CHECK(result.status == Status::converged);
      CHECK(result.objective == 0.0);
      CHECK(result.gap == 0.0);
      CHECK(result.relative_gap == 0.0);
    }
  }
}

TEST_CASE("a fit says when iterations or digits are used up") {
  const Example example(60, 16, 3, 2.0, 3.0, 2);
  for (const Choice& choice : choices) {
    FitSettings settings = settings_of(choice, Precision::double_, 1e-9);
    for (const int iterations : {0, 2}) {
      settings.max_iterations = iterations;
      const FitResult result = fit(example.problem, settings, Start(), one);
      CHECK(result.status == Status::max_iter);
      CHECK(result.iterations == iterations);
      CHECK(result.relative_gap > 1e-9);
    }
    settings = settings_of(choice, Precision::single, 1e-15);
    const FitResult result = fit(example.problem, settings, Start(), one);
    CHECK(result.status == Status::stalled);
    CHECK(result.relative_gap < 1e-6);
    CHECK(result.objective == doctest::Approx(example.minimum()).epsilon(1e-6));
  }
}

TEST_CASE("a monitor hears of every iteration and can stop the fit") {
  struct Listening : Monitor {
    std::vector<Progress> heard;
    int last = -1;
    void progress(const Progress& progress) override {
      heard.push_back(progress);
      if (progress.iteration == last) stop();
    }
  };
  const Example example(60, 16, 3, 2.0, 3.0, 2);
  for (const Choice& choice : choices) {
    for (const int threads : {1, 2}) {
      const FitSettings settings = settings_of(choice, Precision::double_, 1e-9);
      Listening listening;
      const FitResult result = fit(example.problem, settings, Start(), Execution{threads, &listening});
      REQUIRE(static_cast<int>(listening.heard.size()) == result.iterations);
      for (int k = 0; k < result.iterations; ++k) CHECK(listening.heard[k].iteration == k + 1);
      CHECK(listening.heard.back().objective == doctest::Approx(result.objective).epsilon(1e-9));
      CHECK(listening.heard.back().relative_gap == doctest::Approx(result.relative_gap).epsilon(1e-3));
      Listening stopping;
      stopping.last = 2;
      CHECK_THROWS_AS(fit(example.problem, settings, Start(), Execution{threads, &stopping}), Interrupted);
      CHECK(stopping.heard.size() == 2);
    }
  }
}

TEST_CASE("errors name bad problems and settings") {
  const Example example(20, 10, 3, 1.0, 1.0, 2);
  const auto message = [](const Problem& problem, const FitSettings& settings) {
    return rejection([&] { fit(problem, settings, Start(), one); });
  };
  const auto with = [&](auto change) {
    Problem problem = example.problem;
    FitSettings settings;
    change(problem, settings);
    return message(problem, settings);
  };
  CHECK(with([](Problem&, FitSettings&) {}).empty());
  CHECK(with([](Problem& p, FitSettings&) { p.likelihood = nullptr; }) == "the problem has no likelihood");
  CHECK(with([](Problem& p, FitSettings&) { p.X = DenseView<const double>(nullptr, 0, 3); }) ==
        "X has 0 rows, expected at least 1");
  const std::vector<double> short_X(19 * 2);
  CHECK(with([&](Problem& p, FitSettings&) { p.X = DenseView<const double>(short_X.data(), 19, 2); }) ==
        "X has 19 rows but there are 20 labels");
  CHECK(with([](Problem& p, FitSettings&) { p.prior.variance = 0.0; }) ==
        "variance must be positive and finite, got 0");
  CHECK(contains(with([](Problem& p, FitSettings&) { p.prior.variance = std::nan(""); }), "variance"));
  CHECK(with([](Problem& p, FitSettings&) { p.prior.intercept_variance = -1.0; }) ==
        "intercept_variance must be finite and at least 0, got -1");
  CHECK(with([](Problem&, FitSettings& s) { s.tolerance = 0.0; }) == "tol must be positive, got 0");
  CHECK(with([](Problem&, FitSettings& s) { s.max_iterations = -1; }) == "max_iter must be at least 0, got -1");
  CHECK(contains(with([](Problem&, FitSettings& s) { s.history = -1; }), "history must be at least"));
  CHECK(contains(with([](Problem&, FitSettings& s) {
                   s.method = Method::newton;
                   s.space = Space::weights;
                 }),
                 "\"newton\" works on coefficients"));
}
