#include "taxolearn/fit/choose.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "taxolearn/base/check.hpp"
#include "taxolearn/fit/subspace_preconditioner.hpp"
#include "taxolearn/solver/exact.hpp"
#include "taxolearn/solver/lbfgs.hpp"

namespace taxolearn {
namespace {

constexpr double work_for_single = 4e6;  // stored entries times classes: about a millisecond per product
constexpr double work_for_exact = 2e9;   // n^3 C: seconds

/// Numbers in a vector of weights, relative to one of coefficients.
double relative_size(const Problem& problem) {
  const double weights = static_cast<double>(input_features(problem.X)) * static_cast<double>(factor_count(problem));
  return weights / static_cast<double>(input_rows(problem.X)) / static_cast<double>(problem.likelihood->outputs());
}

std::string in_megabytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g MB", bytes / 1e6);
  return text;
}

/// Memory of the factors, and of a covariance matrix for every class that differs from the others.
double exact_bytes(const Problem& problem) {
  const Index n = input_rows(problem.X);
  const Index outputs = problem.likelihood->outputs();
  const double square = 8.0 * static_cast<double>(n) * static_cast<double>(n);
  return ExactSystem::bytes(n, outputs) +
         square * (problem.prior.coupling == nullptr ? 1.0 : static_cast<double>(outputs));
}

bool is_flat(const Problem& problem) {
  return problem.prior.coupling == nullptr || problem.prior.coupling->is_diagonal();
}

void check_exact(const Problem& problem, const FitSettings& settings) {
  require(is_flat(problem), "method \"exact\" is for flat models; choose another method, or an independent coupling");
  const double bytes = exact_bytes(problem);
  const double limit = settings.memory_limit;
  require(bytes <= limit, "method \"exact\" needs ", in_megabytes(bytes), " for ", input_rows(problem.X), " rows and ",
          problem.likelihood->outputs(), " classes, more than memory_limit (", in_megabytes(limit),
          "); choose method \"auto\", or raise memory_limit");
}

}  // namespace

const char* method_name(Method method) {
  switch (method) {
    case Method::automatic:
      return "auto";
    case Method::lbfgs:
      return "lbfgs";
    case Method::nonlinear_cg:
      return "ncg";
    case Method::newton:
      return "newton";
    case Method::exact:
      return "exact";
  }
  return "unknown";
}

Space choose_space(const Problem& problem, const FitSettings& settings) {
  if (settings.space != Space::automatic) return settings.space;
  if (settings.method == Method::newton || settings.method == Method::exact || problem.prior.kernels != nullptr)
    return Space::coefficients;
  return relative_size(problem) < 1.0 ? Space::weights : Space::coefficients;
}

int choose_history(const Problem& problem, Space space) {
  if (problem.prior.kernels != nullptr) return lbfgs_history_of_kernels;
  return lbfgs_history(space == Space::weights ? relative_size(problem) : 1.0);
}

bool single_is_worthwhile(const Problem& problem) {
  const double entries = problem.prior.kernels == nullptr ? static_cast<double>(input_entries(problem.X))
                                                          : 0.5 * problem.prior.kernels->work();
  return entries * static_cast<double>(problem.likelihood->outputs()) >= work_for_single;
}

double lbfgs_bytes(const Problem& problem, Space space, int history) {
  const Index size = point_size(problem, space);
  const Index image = space == Space::coefficients ? size : 0;  // of a vector of coefficients, kept with it
  return lbfgs_bytes(size + image, history, space == Space::weights || may_have_subspace_preconditioner(problem));
}

bool exact_is_affordable(const Problem& problem, const FitSettings& settings) {
  const double n = static_cast<double>(input_rows(problem.X));
  const double work = n * n * n * static_cast<double>(problem.likelihood->outputs());
  return is_flat(problem) && work <= work_for_exact && exact_bytes(problem) <= settings.memory_limit &&
         problem.likelihood->hessian_structure() != HessianStructure::general;
}

FitPlan choose(const Problem& problem, const FitSettings& settings) {
  FitPlan plan;
  plan.space = choose_space(problem, settings);
  plan.history = settings.history > 0 ? settings.history : choose_history(problem, plan.space);
  if (settings.method == Method::exact) check_exact(problem, settings);
  if (settings.method != Method::automatic) {
    plan.method = settings.method;
    plan.reason = std::string(method_name(plan.method)) + " was asked for";
  } else {
    const double bytes = lbfgs_bytes(problem, plan.space, plan.history);
    const bool fits = bytes <= settings.memory_limit;
    plan.method = fits ? Method::lbfgs : Method::nonlinear_cg;
    plan.reason = std::string(method_name(plan.method)) + ", because the vectors of lbfgs take up to " +
                  in_megabytes(bytes) + (fits ? ", within memory_limit" : ", more than memory_limit");
  }
  plan.precision = settings.precision;
  if (plan.precision == Precision::automatic)
    plan.precision =
        single_is_worthwhile(problem) && plan.method != Method::exact ? Precision::single : Precision::double_;
  return plan;
}

}  // namespace taxolearn
