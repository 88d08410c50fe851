#include "taxolearn/fit/fit.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/stopwatch.hpp"
#include "taxolearn/base/vector.hpp"
#include "taxolearn/fit/certificate.hpp"
#include "taxolearn/fit/choose.hpp"
#include "taxolearn/fit/newton.hpp"
#include "taxolearn/fit/predict.hpp"
#include "taxolearn/fit/spaces.hpp"
#include "taxolearn/solver/lbfgs.hpp"
#include "taxolearn/solver/nonlinear_cg.hpp"

namespace taxolearn {
namespace {

constexpr double safety = 0.99;      // the solver aims a little below the tolerance, the certificate decides
constexpr int patience = 1000;       // iterations that must have been allowed before exact steps take over
constexpr int rounds_in_double = 3;  // fresh starts from exact predictors after rounding errors piled up

void check(const Problem& problem, const FitSettings& settings) {
  const Index n = input_rows(problem.X);
  require(problem.likelihood != nullptr, "the problem has no likelihood");
  require(n > 0, "X has 0 rows, expected at least 1");
  require(n == problem.likelihood->rows(), "X has ", n, " rows but there are ", problem.likelihood->rows(), " labels");
  require(problem.prior.coupling == nullptr || problem.prior.coupling->classes() == problem.likelihood->outputs(),
          "the coupling has ", problem.prior.coupling == nullptr ? 0 : problem.prior.coupling->classes(),
          " classes, expected ", problem.likelihood->outputs());
  require(std::isfinite(problem.prior.variance) && problem.prior.variance > 0.0,
          "variance must be positive and finite, got ", problem.prior.variance);
  require(std::isfinite(problem.prior.intercept_variance) && problem.prior.intercept_variance >= 0.0,
          "intercept_variance must be finite and at least 0, got ", problem.prior.intercept_variance);
  require(settings.tolerance > 0.0, "tol must be positive, got ", settings.tolerance);
  require(settings.max_iterations >= 0, "max_iter must be at least 0, got ", settings.max_iterations);
  require(settings.history >= 0, "history must be at least 0, got ", settings.history);
  const bool on_coefficients = settings.method == Method::newton || settings.method == Method::exact;
  require(!on_coefficients || settings.space != Space::weights, "method \"",
          settings.method == Method::exact ? "exact" : "newton",
          "\" works on coefficients; choose space \"coefficients\" or \"auto\"");
  require(problem.prior.kernels == nullptr || settings.space != Space::weights,
          "space \"weights\" needs the linear kernel and products \"auto\"; choose space \"coefficients\" or \"auto\"");
  if (problem.prior.kernels == nullptr) return;
  require(problem.prior.kernels->rows() == n, "the kernels have ", problem.prior.kernels->rows(), " rows, expected ",
          n);
  const Index factors = factor_count(problem);
  const auto own = static_cast<Index>(problem.prior.kernel_of.size());
  require(own == 0 ? problem.prior.kernels->count() == 1 : own == factors, "there are ", problem.prior.kernels->count(),
          " kernels, assigned to ", own, " functions, expected ", factors);
  for (const Index l : problem.prior.kernel_of)
    require(l >= 0 && l < problem.prior.kernels->count(), "a function has kernel ", l, ", expected one of ",
            problem.prior.kernels->count());
}

/// A fit in progress: the point, in the chosen space, and what is known about it.
struct Run {
  const Problem& problem;
  const FitSettings& settings;
  const FitPlan& plan;
  const Execution& execution;
  bool dual;               ///< the point is alpha, else weights; empty means zero
  Matrix<double> alpha;    ///< n x C
  Buffer<double> weights;  ///< W and b, see WeightSpace
  FitResult result;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();

  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); }

  int slots() const {
    switch (plan.method) {
      case Method::automatic:
      case Method::lbfgs:
        return lbfgs_slots(plan.history);
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
    result.precision = sizeof(T) == sizeof(float) ? Precision::single : Precision::double_;
    MinimizeSettings minimize_settings;
    minimize_settings.tolerance = safety * settings.tolerance;
    minimize_settings.max_iterations = settings.max_iterations - result.iterations;
    minimize_settings.history = plan.history;
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
      switch (plan.method) {
        case Method::automatic:
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
      outcome = plan.method == Method::lbfgs ? lbfgs(space, minimize_settings, report)
                                             : nonlinear_cg(space, minimize_settings, report);
      weights = std::move(space.weights());
    }
    result.status = outcome.status;
    result.iterations += outcome.iterations;
  }

  /// Weights of the class functions at the present point and their certificate.
  void certify_point() {
    const Stopwatch watch(result.timings.certificate);
    if (dual) {
      certify(problem, alpha, result, execution);
    } else {
      certify(problem, weights, result, execution);
    }
  }

  bool is_converged() const { return result.relative_gap <= settings.tolerance; }

  /// More iterations would help: the solver was satisfied or stuck, but the certificate is not there yet.
  bool worth_another_round() const { return !is_converged() && result.status != Status::max_iter; }
};

/// -residual at given predictors. At the optimum these are the coefficients, so they are a start near them.
Matrix<double> coefficients_at(const Problem& problem, Matrix<double>&& predictors, const Execution& execution) {
  Matrix<double> alpha = std::move(predictors);
  const Blocks blocks(alpha.rows(), 64);
  parallel_for(blocks.number(), execution, [&](Index block) {
    problem.likelihood->residual(blocks.first(block), blocks.length(block), alpha.row(blocks.first(block)));
  });
  for (Index k = 0; k < alpha.size(); ++k) alpha.data()[k] = -alpha.data()[k];
  return alpha;
}

/// Brings a given start into the chosen space; leaves the point empty where there is none.
void prepare(Run& run, const Start& start) {
  const Problem& problem = run.problem;
  const Index n = problem.likelihood->rows();
  const Index classes = problem.likelihood->outputs();
  const Index d = input_features(problem.X);
  require(start.weights == nullptr || problem.prior.kernels == nullptr, "weights to start from need the linear kernel");
  if (start.point != nullptr && run.dual) {
    run.alpha = Matrix<double>(n, classes);
    std::copy(start.point, start.point + n * classes, run.alpha.data());
  } else if (start.point != nullptr) {
    run.weights.assign(start.point, start.point + point_size(problem, Space::weights));
  } else if (start.coefficients != nullptr || start.predictors != nullptr) {
    Matrix<double> given(n, classes);
    const double* const from = start.coefficients != nullptr ? start.coefficients : start.predictors;
    std::copy(from, from + n * classes, given.data());
    run.alpha =
        start.coefficients != nullptr ? std::move(given) : coefficients_at(problem, std::move(given), run.execution);
  } else if (start.weights != nullptr && (run.dual || problem.prior.coupling != nullptr)) {
    Matrix<double> u(n, classes);
    predict(problem.X, DenseView<const double>(start.weights, d, classes), start.weights + d * classes,
            problem.likelihood->link(), Output::predictor, u.view(), run.execution);
    run.alpha = coefficients_at(problem, std::move(u), run.execution);
  } else if (start.weights != nullptr) {
    const double sigma =
        problem.prior.intercept_variance > 0.0 ? 1.0 / std::sqrt(problem.prior.intercept_variance) : 0.0;
    run.weights.assign(start.weights, start.weights + (d + 1) * classes);
    for (Index k = 0; k < d * classes; ++k)
      run.weights[static_cast<std::size_t>(k)] /= std::sqrt(problem.prior.variance);
    for (Index c = 0; c < classes; ++c) run.weights[static_cast<std::size_t>(d * classes + c)] *= sigma;
  }
  if (!run.dual && run.alpha.size() > 0) {
    run.weights = weights_of(problem, run.alpha, run.execution);
    run.alpha = Matrix<double>();
  }
}

/// Exact steps take over from an automatic method that could not finish, where they are a matter of seconds.
bool falls_back(const Problem& problem, const FitSettings& settings, const FitResult& result) {
  const bool is_open = settings.method == Method::automatic && settings.space != Space::weights &&
                       settings.precision != Precision::single && settings.exact_fallback;
  const bool was_patient = result.status == Status::stalled || settings.max_iterations >= patience;
  return is_open && was_patient && result.status != Status::converged && exact_is_affordable(problem, settings);
}

FitResult run_plan(const Problem& problem, const FitSettings& settings, const FitPlan& plan, const Start& start,
                   const Execution& execution) {
  Run run{problem, settings, plan, execution, plan.space == Space::coefficients, {}, {}, {}};
  run.result.method = plan.method;
  run.result.space = plan.space;
  prepare(run, start);
  bool more = true;
  if (plan.precision == Precision::single) {
    run.minimize<float>();
    run.certify_point();
    more = settings.precision == Precision::automatic && run.worth_another_round();
  }
  for (int round = 0; more && round < rounds_in_double; ++round) {
    run.minimize<double>();
    run.certify_point();
    more = run.worth_another_round();
  }
  if (run.is_converged()) {
    run.result.status = Status::converged;
  } else if (run.result.status == Status::converged) {
    run.result.status = Status::stalled;
  }
  const std::string reason = std::move(run.result.reason);
  run.result.reason = plan.reason + (reason.empty() ? "" : "; " + reason);
  if (settings.keep_point && run.dual) run.result.point.assign(run.alpha.data(), run.alpha.data() + run.alpha.size());
  if (settings.keep_point && !run.dual) run.result.point = std::move(run.weights);
  run.result.timings.total = run.seconds();
  return std::move(run.result);
}

std::string gap_reached(const FitResult& result) {
  char text[128];
  std::snprintf(text, sizeof text, "exact, because %s was at a relative gap of %.1e after %d iterations",
                method_name(result.method), result.relative_gap, result.iterations);
  return text;
}

/// Predictors of all rows.
Matrix<double> predictors_of(const Problem& problem, const FitResult& result, const Execution& execution) {
  Matrix<double> u(input_rows(problem.X), problem.likelihood->outputs());
  if (problem.prior.kernels == nullptr) {
    predict(problem.X, result.weights.view(), result.intercepts.data(), problem.likelihood->link(), Output::predictor,
            u.view(), execution);
  }
  return u;
}

/// The same by exact steps, from where the first fit ended; that one, if they come to no better end.
FitResult fit_exactly(const Problem& problem, const FitSettings& settings, FitResult first,
                      const Execution& execution) {
  FitSettings exact = settings;
  exact.method = Method::exact;
  exact.space = Space::automatic;
  FitResult second;
  try {
    FitPlan plan = choose(problem, exact);
    plan.reason = gap_reached(first);
    Start start;
    Matrix<double> predictors;
    if (first.space == Space::coefficients) {
      start.coefficients = first.point.data();
    } else {
      predictors = predictors_of(problem, first, execution);
      start.predictors = predictors.data();
    }
    second = run_plan(problem, exact, plan, start, execution);
  } catch (const InvalidArgument&) {  // rounding has made a covariance indefinite
    return first;
  }
  if (second.status != Status::converged) return first;
  second.iterations += first.iterations;
  second.products += first.products;
  second.timings += first.timings;
  return second;
}

FitResult fit_plainly(const Problem& problem, const FitSettings& settings, const Start& start,
                      const Execution& execution) {
  check(problem, settings);
  const FitPlan plan = choose(problem, settings);
  FitSettings first = settings;
  first.keep_point = true;
  FitResult result = run_plan(problem, first, plan, start, execution);
  if (falls_back(problem, settings, result)) result = fit_exactly(problem, first, std::move(result), execution);
  if (!settings.keep_point) result.point = Buffer<double>();
  return result;
}

}  // namespace

FitResult fit(const Problem& problem, const FitSettings& settings, const Start& start, const Execution& execution) {
  if (problem.prior.block_variances.empty()) return fit_plainly(problem, settings, start, execution);
  require(problem.likelihood != nullptr, "the problem has no likelihood");
  require(problem.prior.kernels == nullptr, "variances of blocks belong to the kernels, where there are some");
  // Weights of features times their factor become weights of the features themselves.
  Problem scaled = problem;
  scaled.X = with_variances(problem.X, problem.prior.block_variances);
  const Index classes = problem.likelihood->outputs();
  const auto scale_weights = [&](double* weights, bool inverse) {
    for (const InputBlock& block : *input_blocks(scaled.X)) {
      const double factor = inverse ? 1.0 / block.factor : block.factor;
      double* const own = weights + block.first * classes;
      for (Index k = 0; k < input_features(block.X) * classes; ++k) own[k] *= factor;
    }
  };
  Start begin = start;
  Buffer<double> weights;
  if (start.weights != nullptr) {
    weights.assign(start.weights, start.weights + (input_features(problem.X) + 1) * classes);
    scale_weights(weights.data(), true);
    begin.weights = weights.data();
  }
  FitResult result = fit_plainly(scaled, settings, begin, execution);
  scale_weights(result.weights.data(), false);
  return result;
}

}  // namespace taxolearn
