#include <algorithm>
#include <chrono>
#include <cmath>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/stopwatch.hpp"
#include "taxolearn/base/vector.hpp"
#include "taxolearn/fit/certificate.hpp"
#include "taxolearn/fit/newton.hpp"
#include "taxolearn/fit/problem.hpp"
#include "taxolearn/fit/spaces.hpp"

namespace taxolearn {
namespace {

constexpr double work_for_single = 4e6;  // stored entries times classes: about a millisecond a product
constexpr double safety = 0.99;          // the solver aims a little below the tolerance, the certificate decides
constexpr int rounds_in_double = 3;      // fresh starts from exact predictors after rounding errors piled up

// More pairs save few iterations on text (59, 53, 56, 55 and 53 with 1, 2, 3, 5 and 10 of them on 20 newsgroups) but
// each costs a pass over two n x C arrays; on weights, if these are few, they cost next to nothing.
// A kernel matrix of n^2 entries costs more than the vectors, and its problems are worse conditioned.
constexpr int history_of_coefficients = 2;
constexpr int history_of_kernel_coefficients = 10;
constexpr int most_history_of_weights = 20;

/// Numbers in a vector of weights, relative to one of coefficients.
double relative_size(const Problem& problem) {
  const double weights = static_cast<double>(input_features(problem.X)) * static_cast<double>(factor_count(problem));
  return weights / static_cast<double>(input_rows(problem.X)) / static_cast<double>(problem.likelihood->classes());
}

/// As many pairs of weights, in double precision, as take the memory that the pairs of coefficients and their images
/// would take in single precision.
int history_of_weights(const Problem& problem) {
  const double pairs = history_of_coefficients / std::max(relative_size(problem), 1e-3);
  return std::clamp(static_cast<int>(pairs), history_of_coefficients, most_history_of_weights);
}

void check(const Problem& problem, const Settings& settings) {
  const Index n = input_rows(problem.X);
  require(problem.likelihood != nullptr, "the problem has no likelihood");
  require(n > 0, "X has 0 rows, expected at least 1");
  require(n == problem.likelihood->rows(), "X has ", n, " rows but there are ", problem.likelihood->rows(), " labels");
  require(problem.coupling == nullptr || problem.coupling->classes() == problem.likelihood->classes(),
          "the coupling has ", problem.coupling == nullptr ? 0 : problem.coupling->classes(), " classes, expected ",
          problem.likelihood->classes());
  require(std::isfinite(problem.variance) && problem.variance > 0.0, "variance must be positive and finite, got ",
          problem.variance);
  require(std::isfinite(problem.sigma2) && problem.sigma2 >= 0.0, "sigma2 must be finite and at least 0, got ",
          problem.sigma2);
  require(settings.tolerance > 0.0, "tol must be positive, got ", settings.tolerance);
  require(settings.max_iterations >= 0, "max_iter must be at least 0, got ", settings.max_iterations);
  require(settings.history >= 0, "history must be at least 0, got ", settings.history);
  const bool on_coefficients = settings.method == Method::newton || settings.method == Method::exact;
  require(!on_coefficients || settings.state != State::weights, "method \"",
          settings.method == Method::exact ? "exact" : "newton",
          "\" works on coefficients; choose state \"coefficients\" or \"auto\"");
  require(settings.method != Method::exact || problem.coupling == nullptr ||
              dynamic_cast<const IndependentCoupling*>(problem.coupling) != nullptr,
          "method \"exact\" is for flat models; choose another method, or coupling \"identity\"");
  require(problem.kernels == nullptr || settings.state != State::weights,
          "state \"weights\" needs the linear kernel; choose state \"coefficients\" or \"auto\"");
  if (problem.kernels == nullptr) return;
  require(problem.kernels->rows() == n, "the kernels have ", problem.kernels->rows(), " rows, expected ", n);
  const Index factors = factor_count(problem);
  const auto own = static_cast<Index>(problem.kernel_of.size());
  require(own == 0 ? problem.kernels->count() == 1 : own == factors, "there are ", problem.kernels->count(),
          " kernels, assigned to ", own, " functions, expected ", factors);
  for (const Index l : problem.kernel_of)
    require(l >= 0 && l < problem.kernels->count(), "a function has kernel ", l, ", expected one of ",
            problem.kernels->count());
}

/// A fit in progress: the point, in the chosen state, and what is known about it.
struct Run {
  const Problem& problem;
  const Settings& settings;
  const Execution& execution;
  bool dual;               ///< the point is alpha, else weights; empty means zero
  Matrix<double> alpha;    ///< n x C
  Buffer<double> weights;  ///< W and b, see WeightSpace
  Result result;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();

  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); }

  int history() const {
    if (settings.history > 0) return settings.history;
    return choose_history(problem, dual ? State::coefficients : State::weights);
  }

  int slots() const {
    switch (settings.method) {
      case Method::lbfgs:
        return lbfgs_slots(history());
      case Method::nonlinear_cg:
        return nonlinear_cg_slots;
      case Method::newton:
      case Method::exact:
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
      if (alpha.size() > 0) {
        space.start(alpha);
        if (result.iterations == 0) space.rescale();
      }
      alpha = Matrix<double>();
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
        case Method::exact:
          outcome = exact_newton(space, problem, minimize_settings, report, execution);
          break;
      }
      alpha = std::move(space.coefficients());
    } else {
      WeightSpace<T> space(problem, slots(), execution, result);
      if (!weights.empty()) {
        space.start(std::move(weights));
        if (result.iterations == 0) space.rescale();
      }
      outcome = settings.method == Method::lbfgs ? lbfgs(space, minimize_settings, report)
                                                 : nonlinear_cg(space, minimize_settings, report);
      weights = std::move(space.weights());
    }
    result.status = outcome.status;
    result.iterations += outcome.iterations;
  }

  /// Weights of the class functions at the present point and their certificate.
  void certify() {
    const Stopwatch watch(result.timings.certificate);
    if (dual) {
      conclude(problem, alpha, result, execution);
    } else {
      conclude(problem, weights, result, execution);
    }
  }

  bool good() const { return result.relative_gap <= settings.tolerance; }

  /// More iterations would help: the solver was satisfied or stuck, but the certificate is not there yet.
  bool worth_another_round() const { return !good() && result.status != Status::max_iter; }
};

/// -residual at given predictors. At the optimum these are the coefficients, so they are a good guess of new ones.
Matrix<double> guess_coefficients(const Problem& problem, Matrix<double>&& predictors, const Execution& execution) {
  Matrix<double> alpha = std::move(predictors);
  const Blocks blocks(alpha.rows(), 64);
  parallel_for(blocks.number(), execution, [&](Index block) {
    problem.likelihood->residual(blocks.first(block), blocks.length(block), alpha.row(blocks.first(block)));
  });
  for (Index k = 0; k < alpha.size(); ++k) alpha.data()[k] = -alpha.data()[k];
  return alpha;
}

/// Brings a given start into the chosen state; leaves the point empty where there is none.
void prepare(Run& run, const Start& start) {
  const Problem& problem = run.problem;
  const Index n = problem.likelihood->rows();
  const Index classes = problem.likelihood->classes();
  const Index d = input_features(problem.X);
  require(start.weights == nullptr || problem.kernels == nullptr, "weights to start from need the linear kernel");
  if (start.point != nullptr && run.dual) {
    run.alpha = Matrix<double>(n, classes);
    std::copy(start.point, start.point + n * classes, run.alpha.data());
  } else if (start.point != nullptr) {
    run.weights.assign(start.point, start.point + point_size(problem, State::weights));
  } else if (start.coefficients != nullptr || start.predictors != nullptr) {
    Matrix<double> given(n, classes);
    const double* const from = start.coefficients != nullptr ? start.coefficients : start.predictors;
    std::copy(from, from + n * classes, given.data());
    run.alpha =
        start.coefficients != nullptr ? std::move(given) : guess_coefficients(problem, std::move(given), run.execution);
  } else if (start.weights != nullptr && (run.dual || problem.coupling != nullptr)) {
    Matrix<double> u(n, classes);
    predict(problem.X, DenseView<const double>(start.weights, d, classes), start.weights + d * classes,
            Output::predictor, u.view(), run.execution);
    run.alpha = guess_coefficients(problem, std::move(u), run.execution);
  } else if (start.weights != nullptr) {
    const double sigma = problem.sigma2 > 0.0 ? 1.0 / std::sqrt(problem.sigma2) : 0.0;
    run.weights.assign(start.weights, start.weights + (d + 1) * classes);
    for (Index k = 0; k < d * classes; ++k) run.weights[static_cast<std::size_t>(k)] /= std::sqrt(problem.variance);
    for (Index c = 0; c < classes; ++c) run.weights[static_cast<std::size_t>(d * classes + c)] *= sigma;
  }
  if (!run.dual && run.alpha.size() > 0) {
    run.weights = weights_of(problem, run.alpha, run.execution);
    run.alpha = Matrix<double>();
  }
}

}  // namespace

State choose_state(const Problem& problem, const Settings& settings) {
  if (settings.state != State::automatic) return settings.state;
  if (settings.method == Method::newton || settings.method == Method::exact || problem.kernels != nullptr)
    return State::coefficients;
  return relative_size(problem) < 1.0 ? State::weights : State::coefficients;
}

int choose_history(const Problem& problem, State state) {
  if (problem.kernels != nullptr) return history_of_kernel_coefficients;
  return state == State::weights ? history_of_weights(problem) : history_of_coefficients;
}

bool single_pays(const Problem& problem) {
  const double entries =
      problem.kernels == nullptr ? static_cast<double>(input_entries(problem.X)) : 0.5 * problem.kernels->work();
  return entries * static_cast<double>(problem.likelihood->classes()) >= work_for_single;
}

Result fit(const Problem& problem, const Settings& settings, const Start& start, const Execution& execution) {
  check(problem, settings);
  const State state = choose_state(problem, settings);
  Run run{problem, settings, execution, state == State::coefficients, {}, {}, {}};
  run.result.state = run.dual ? "coefficients" : "weights";
  prepare(run, start);
  const bool single =
      settings.precision == Precision::single ||
      (settings.precision == Precision::automatic && single_pays(problem) && settings.method != Method::exact);
  bool more = true;
  if (single) {
    run.minimize<float>();
    run.certify();
    more = settings.precision == Precision::automatic && run.worth_another_round();
  }
  for (int round = 0; more && round < rounds_in_double; ++round) {
    run.minimize<double>();
    run.certify();
    more = run.worth_another_round();
  }
  if (run.good()) {
    run.result.status = Status::converged;
  } else if (run.result.status == Status::converged) {
    run.result.status = Status::stalled;
  }
  if (settings.keep_point && run.dual) run.result.point.assign(run.alpha.data(), run.alpha.data() + run.alpha.size());
  if (settings.keep_point && !run.dual) run.result.point = std::move(run.weights);
  run.result.timings.total = run.seconds();
  return std::move(run.result);
}

}  // namespace taxolearn
