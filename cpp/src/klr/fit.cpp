#include <algorithm>
#include <chrono>
#include <cmath>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/stopwatch.hpp"
#include "taxolearn/base/vector.hpp"
#include "taxolearn/klr/certificate.hpp"
#include "taxolearn/klr/newton.hpp"
#include "taxolearn/klr/problem.hpp"
#include "taxolearn/klr/space.hpp"

namespace taxolearn {
namespace {

constexpr double single_pays = 4e6;  // stored entries times classes: about a millisecond a product
constexpr double safety = 0.99;      // the solver aims a little below the tolerance, the certificate decides
constexpr int rounds_in_double = 3;  // fresh starts from exact predictors after rounding errors piled up

// More pairs save few iterations on text (56, 55 and 53 with 3, 5 and 10 of them on 20 newsgroups) but each costs a
// pass over two n x C arrays; on weights they cost next to nothing.
constexpr int history_of_coefficients = 3;
constexpr int history_of_weights = 20;

void check(const Problem& problem, const Settings& settings) {
  const Index n = input_rows(problem.X);
  require(problem.likelihood != nullptr, "the problem has no likelihood");
  require(n > 0, "X has 0 rows, expected at least 1");
  require(n == problem.likelihood->rows(), "X has ", n, " rows but there are ", problem.likelihood->rows(), " labels");
  require(std::isfinite(problem.variance) && problem.variance > 0.0, "variance must be positive and finite, got ",
          problem.variance);
  require(std::isfinite(problem.sigma2) && problem.sigma2 >= 0.0, "sigma2 must be finite and at least 0, got ",
          problem.sigma2);
  require(settings.tolerance > 0.0, "tol must be positive, got ", settings.tolerance);
  require(settings.max_iterations >= 0, "max_iter must be at least 0, got ", settings.max_iterations);
  require(settings.history >= 0, "history must be at least 0, got ", settings.history);
  require(settings.method != Method::newton || settings.state != State::weights,
          "method \"newton\" works on coefficients; choose state \"coefficients\" or \"auto\"");
}

/// A fit in progress: the point, in the chosen state, and what is known about it.
struct Run {
  const Problem& problem;
  const Settings& settings;
  const Execution& execution;
  bool dual;             ///< point is alpha (n x C), else W ((d + 1) x C)
  Matrix<double> point;  ///< empty means zero
  Result result;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();

  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); }

  int history() const {
    if (settings.history > 0) return settings.history;
    return dual ? history_of_coefficients : history_of_weights;
  }

  int slots() const {
    switch (settings.method) {
      case Method::lbfgs:
        return lbfgs_slots(history());
      case Method::nonlinear_cg:
        return nonlinear_cg_slots;
      case Method::newton:
        return newton_slots;
    }
    return 0;
  }

  /// Products in precision T from the present point on.
  template <class T>
  void minimize() {
    result.precision = sizeof(T) == sizeof(float) ? "single" : "double";
    MinimizeSettings minimize_settings;
    minimize_settings.tolerance = safety * settings.tolerance;
    minimize_settings.max_iterations = settings.max_iterations - result.iterations;
    minimize_settings.history = history();
    const int before = result.iterations;
    const Report report = [&](const MinimizeResult& state) {
      if (execution.monitor == nullptr) return;
      Progress progress;
      progress.iteration = before + state.iterations;
      progress.products = result.products;
      progress.objective = state.objective;
      progress.relative_gap = state.gap / std::abs(state.objective);
      progress.seconds = seconds();
      execution.monitor->progress(progress);
    };
    MinimizeResult outcome;
    if (dual) {
      CoefficientSpace<T> space(problem, slots(), execution, result);
      if (point.size() > 0) space.start(point);
      point = Matrix<double>();
      switch (settings.method) {
        case Method::lbfgs:
          outcome = lbfgs(space, minimize_settings, report);
          break;
        case Method::nonlinear_cg:
          outcome = nonlinear_cg(space, minimize_settings, report);
          break;
        case Method::newton:
          outcome = newton(space, problem, minimize_settings, report, execution);
          break;
      }
      point = std::move(space.coefficients());
    } else {
      WeightSpace<T> space(problem, slots(), execution, result);
      if (point.size() > 0) space.start(point);
      point = Matrix<double>();
      outcome = settings.method == Method::lbfgs ? lbfgs(space, minimize_settings, report)
                                                 : nonlinear_cg(space, minimize_settings, report);
      point = std::move(space.weights());
    }
    result.status = outcome.status;
    result.iterations += outcome.iterations;
  }

  /// Weights of the present point and their certificate.
  void conclude() {
    const Stopwatch watch(result.timings.certificate);
    if (dual) {
      recover_weights(problem, point, result.weights, result.intercepts, execution);
    } else {
      const Index d = input_features(problem.X);
      const double scale = std::sqrt(problem.variance);
      const double sigma = std::sqrt(problem.sigma2);
      result.weights = Matrix<double>(d, point.cols());
      for (Index k = 0; k < result.weights.size(); ++k) result.weights.data()[k] = scale * point.data()[k];
      result.intercepts.resize(static_cast<std::size_t>(point.cols()));
      for (Index c = 0; c < point.cols(); ++c) result.intercepts[static_cast<std::size_t>(c)] = sigma * point.row(d)[c];
    }
    result.products += dual ? 2 : 1;
    certify(problem, result, execution);
  }

  bool good() const { return result.relative_gap <= settings.tolerance; }

  /// More iterations would help: the solver was satisfied or stuck, but the certificate is not there yet.
  bool worth_another_round() const { return !good() && result.status != Status::max_iter; }
};

/// Brings a given start into the chosen state; leaves the point empty where there is none.
void prepare(Run& run, const Start& start) {
  const Likelihood& likelihood = *run.problem.likelihood;
  const Index n = likelihood.rows();
  const Index classes = likelihood.classes();
  const Index d = input_features(run.problem.X);
  const auto point_from = [&](const double* coef, const double* intercepts) {
    const double scale = 1.0 / std::sqrt(run.problem.variance);
    const double sigma = run.problem.sigma2 > 0.0 ? 1.0 / std::sqrt(run.problem.sigma2) : 0.0;
    run.point = Matrix<double>(d + 1, classes);
    for (Index k = 0; k < d * classes; ++k) run.point.data()[k] = scale * coef[k];
    for (Index c = 0; c < classes; ++c) run.point.row(d)[c] = sigma * intercepts[c];
  };
  if (start.coefficients != nullptr && run.dual) {
    run.point = Matrix<double>(n, classes);
    std::copy(start.coefficients, start.coefficients + n * classes, run.point.data());
  } else if (start.weights != nullptr && !run.dual) {
    point_from(start.weights, start.weights + d * classes);
  } else if (start.coefficients != nullptr) {
    Matrix<double> alpha(n, classes), coef;
    std::vector<double> intercepts;
    std::copy(start.coefficients, start.coefficients + n * classes, alpha.data());
    recover_weights(run.problem, alpha, coef, intercepts, run.execution);
    point_from(coef.data(), intercepts.data());
  } else if (start.weights != nullptr) {
    // At the optimum alpha = -residual, so the residual of old predictions is a good guess of new coefficients.
    run.point = Matrix<double>(n, classes);
    predict(run.problem.X, DenseView<const double>(start.weights, d, classes), start.weights + d * classes,
            Output::predictor, run.point.view(), run.execution);
    parallel_sum<double>(Blocks(n, 64), run.execution, [&](Index first, Index count) {
      return likelihood.residual(first, count, run.point.row(first));
    });
    for (Index k = 0; k < run.point.size(); ++k) run.point.data()[k] = -run.point.data()[k];
  }
}

}  // namespace

State choose_state(const Problem& problem, const Settings& settings) {
  if (settings.state != State::automatic) return settings.state;
  if (settings.method == Method::newton) return State::coefficients;
  return input_features(problem.X) < input_rows(problem.X) ? State::weights : State::coefficients;
}

Result fit(const Problem& problem, const Settings& settings, const Start& start, const Execution& execution) {
  check(problem, settings);
  const State state = choose_state(problem, settings);
  Run run{problem, settings, execution, state == State::coefficients, {}, {}};
  run.result.state = run.dual ? "coefficients" : "weights";
  prepare(run, start);
  const double work =
      static_cast<double>(input_entries(problem.X)) * static_cast<double>(problem.likelihood->classes());
  const bool single =
      settings.precision == Precision::single || (settings.precision == Precision::automatic && work >= single_pays);
  bool more = true;
  if (single) {
    run.minimize<float>();
    run.conclude();
    more = settings.precision == Precision::automatic && run.worth_another_round();
  }
  for (int round = 0; more && round < rounds_in_double; ++round) {
    run.minimize<double>();
    run.conclude();
    more = run.worth_another_round();
  }
  if (run.good()) {
    run.result.status = Status::converged;
  } else if (run.result.status == Status::converged) {
    run.result.status = Status::stalled;
  }
  run.result.timings.total = run.seconds();
  return std::move(run.result);
}

}  // namespace taxolearn
