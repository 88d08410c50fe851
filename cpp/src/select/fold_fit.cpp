#include "fold_fit.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fold_rows.hpp"
#include "gradient.hpp"
#include "lockstep.hpp"
#include "row_blocks.hpp"
#include "taxolearn/base/stopwatch.hpp"
#include "taxolearn/base/vector.hpp"
#include "taxolearn/couplings/replicated.hpp"
#include "taxolearn/fit/choose.hpp"
#include "taxolearn/fit/newton.hpp"
#include "taxolearn/fit/subspace_preconditioner.hpp"
#include "taxolearn/likelihood/quadratic_model.hpp"
#include "taxolearn/operators/linear.hpp"
#include "taxolearn/solver/lbfgs.hpp"
#include "taxolearn/solver/nonlinear_cg.hpp"
#include "temperature.hpp"

namespace taxolearn {
namespace {

constexpr double negligible = 1e-12;  // objective of a system, in nats: its right-hand side is rounding, or nearly so

/// The likelihood's curvature at predictors u, as it keeps it for products with its Hessian.
Matrix<double> curvature_at(const Likelihood& likelihood, const Matrix<double>& u, const Execution& execution) {
  Matrix<double> state = u;
  const Blocks blocks = blocks_of(u);
  parallel_for(blocks.number(), execution, [&](Index block) {
    likelihood.curvature(blocks.first(block), blocks.length(block), state.row(blocks.first(block)));
  });
  return state;
}

/// x <- -H x.
void to_minus_hessian_product(const Likelihood& likelihood, const Matrix<double>& state, Matrix<double>& x,
                              const Execution& execution) {
  const Blocks blocks = blocks_of(x);
  parallel_for(blocks.number(), execution, [&](Index block) {
    const Index first = blocks.first(block);
    const Index count = blocks.length(block);
    likelihood.hessian(first, count, state.row(first), x.row(first));
    std::transform(x.row(first), x.row(first) + count * x.cols(), x.row(first), [](double value) { return -value; });
  });
}

/// Fits find coefficients up to what K does not see. Derivatives by variances of factors do not see it either; those by
/// other parameters may. For them both sides are what the predictors ask for: alpha = -r and f = c - H K f, given K f.
void determine_sides(const Coupling& coupling, const Likelihood& likelihood, const Matrix<double>& state,
                     const Matrix<double>& residual, const Matrix<double>& c, Matrix<double> image,
                     FoldOutcome& outcome, const Execution& execution) {
  if (!coupling.parameter_of_factor().empty()) return;
  to_minus_hessian_product(likelihood, state, image, execution);
  axpy(1.0, c.data(), image.data(), c.size(), execution);
  outcome.f = as_buffer(image, 1.0);
  outcome.alpha = as_buffer(residual, -1.0);
}

double inner_product(const Matrix<double>& a, const Matrix<double>& b, const Execution& execution) {
  return dot(a.data(), b.data(), a.size(), execution);
}

/// Of all rows, with weight 0 for those that the fold holds out; or for all others.
std::unique_ptr<Likelihood> masked(const CrossValidation& cv, Index fold, bool held_out) {
  std::vector<Index> rows;
  std::vector<double> factors;
  for (Index i = 0; i < cv.folds().rows(); ++i) {
    rows.push_back(i);
    factors.push_back((cv.folds().of_row[static_cast<std::size_t>(i)] == fold) == held_out ? 1.0 : 0.0);
  }
  return (held_out ? cv.held_out() : cv.likelihood()).subset(rows, factors);
}

/// Adds how a fit or a system went to the outcome of its fold.
void record(const MinimizeResult& result, double& gap, FoldOutcome& outcome) {
  outcome.iterations += result.iterations;
  outcome.converged = outcome.converged && result.status == Status::converged;
  gap = result.gap == 0.0 ? 0.0 : std::abs(result.gap / result.objective);
}

/// One side of several folds, next to each other, n x (folds C).
Matrix<double> side_by_side(const std::vector<FoldOutcome>& folds, Index rows, Index classes,
                            const Buffer<double>& (FoldOutcome::*side)() const) {
  const auto count = static_cast<Index>(folds.size());
  Matrix<double> out(rows, count * classes);
  for (Index k = 0; k < count; ++k) {
    const double* const from = (folds[static_cast<std::size_t>(k)].*side)().data();
    for (Index i = 0; i < rows; ++i) std::copy(from + i * classes, from + (i + 1) * classes, out.row(i) + k * classes);
  }
  return out;
}

// What differs between the two spaces of vectors.

template <class T>
void start(CoefficientSpace<T>& space, const Buffer<double>& point) {
  space.start(as_matrix(point, space.predictors().rows(), space.predictors().cols()));
}
template <class T>
void start(WeightSpace<T>& space, const Buffer<double>& point) {
  space.start(Buffer<double>(point));
}

template <class T>
Buffer<double> point_of(CoefficientSpace<T>& space) {
  const Matrix<double>& alpha = space.coefficients();
  return Buffer<double>(alpha.data(), alpha.data() + alpha.size());
}
template <class T>
Buffer<double> point_of(WeightSpace<T>& space) {
  return space.weights();
}

/// <x, point of the space>.
template <class T>
double inner(CoefficientSpace<T>& space, const Buffer<double>& x, const Execution& execution) {
  return dot(x.data(), space.predictors().data(), space.predictors().size(), execution);
}
template <class T>
double inner(WeightSpace<T>& space, const Buffer<double>& x, const Execution& execution) {
  return dot(x.data(), space.weights().data(), static_cast<Index>(x.size()), execution);
}

template <class T>
Index point_size(CoefficientSpace<T>& space) {
  return space.predictors().size();
}
template <class T>
Index point_size(WeightSpace<T>& space) {
  return static_cast<Index>(space.weights().size());
}

/// The solution of a system is known at rows where c is not zero: there H is.
template <class T>
void put_known(CoefficientSpace<T>&, const Matrix<double>& c, Buffer<double>& point) {
  for (Index k = 0; k < c.size(); ++k) {
    if (c.data()[k] != 0.0) point[static_cast<std::size_t>(k)] = c.data()[k];
  }
}
template <class T>
void put_known(WeightSpace<T>&, const Matrix<double>&, Buffer<double>&) {}

}  // namespace

template <class T>
FoldFits<T>::FoldFits(const CrossValidation& cv, const Prior& prior, const CriterionSettings& settings,
                      LinearParts<T>& linear, Space space, const WarmStart& before, WarmStart& after, Criterion& out,
                      const Execution& execution)
    : cv_(cv),
      prior_(prior),
      settings_(settings),
      linear_(linear),
      space_(space),
      fits_(before.fits, after.fits),
      adjoints_(before.adjoints, after.adjoints),
      out_(out),
      execution_(execution),
      rows_(cv.likelihood().rows()),
      classes_(cv.likelihood().outputs()) {}

template <class T>
Problem FoldFits<T>::make_problem(const Coupling& coupling, Index copies) const {
  Problem problem;
  problem.X = cv_.inputs();
  problem.likelihood = &cv_.likelihood();
  problem.prior = prior_;
  problem.prior.coupling = &coupling;
  for (Index k = 1; k < copies; ++k)
    problem.prior.kernel_of.insert(problem.prior.kernel_of.end(), prior_.kernel_of.begin(), prior_.kernel_of.end());
  return problem;
}

template <class T>
MinimizeSettings FoldFits<T>::minimize_settings(const Problem& problem, double tolerance) const {
  MinimizeSettings settings;
  settings.tolerance = tolerance;
  settings.max_iterations = settings_.max_iterations;
  settings.history = choose_history(problem, space_);
  return settings;
}

template <class T>
Report FoldFits<T>::report(FoldOutcome& outcome, const Execution& execution) const {
  return [this, &outcome, execution](const MinimizeResult& state) {
    if (execution.monitor == nullptr) return;
    Progress progress;
    progress.iteration = out_.iterations + outcome.iterations + state.iterations;
    progress.products = out_.products + outcome.counters.products;
    progress.objective = state.objective;
    progress.relative_gap = std::abs(state.gap / state.objective);
    execution.monitor->progress(progress);
  };
}

template <class T>
void FoldFits<T>::write(Index fold, const Matrix<double>& u) const {
  if (predictors_ == nullptr) return;
  for (const Index i : cv_.folds().held_out(fold)) std::copy(u.row(i), u.row(i) + classes_, predictors_->row(i));
}

template <class T>
void FoldFits<T>::merge(const FoldOutcome& outcome) {
  out_.value += outcome.value;
  out_.plain_value += outcome.plain_value;
  out_.temperature_gradient += outcome.temperature_gradient;
  out_.gap = std::isfinite(outcome.gap) ? std::max(out_.gap, outcome.gap) : outcome.gap;
  out_.adjoint_gap =
      std::isfinite(outcome.adjoint_gap) ? std::max(out_.adjoint_gap, outcome.adjoint_gap) : outcome.adjoint_gap;
  out_.converged = out_.converged && outcome.converged;
  out_.iterations += outcome.iterations;
  out_.products += outcome.counters.products;
  out_.fit_seconds += outcome.fit_seconds;
  out_.adjoint_seconds += outcome.adjoint_seconds;
  out_.counters.algorithm = outcome.counters.algorithm;
  out_.counters.timings.products += outcome.counters.timings.products;
  out_.counters.timings.likelihood += outcome.counters.timings.likelihood;
  out_.counters.timings.vectors += outcome.counters.timings.vectors;
  fits_.append(outcome.fit);
  if (settings_.gradient) adjoints_.append(outcome.adjoint);
}

template <class T>
std::vector<Operator<T>*> FoldFits<T>::whole_operators() {
  if (prior_.kernels == nullptr) {
    if (linear_.whole == nullptr)
      linear_.whole = make_linear<T>(cv_.inputs(), 1.0, LinearAlgorithm::automatic, execution_);
    return {linear_.whole.get()};
  }
  std::vector<Operator<T>*> out;
  for (const auto& each : prior_.kernels->template operators<T>(execution_)) out.push_back(each.get());
  return out;
}

template <class T>
FoldRows<T> FoldFits<T>::operators_of(Index fold) {
  FoldRows<T> out;
  out.in = cv_.folds().trained(fold);
  out.held_out = cv_.folds().held_out(fold);
  if (prior_.kernels == nullptr) {
    out.places_in = out.in;
    out.places_out = out.held_out;
    out.whole = whole_operators();
    linear_.part.resize(static_cast<std::size_t>(cv_.folds().count));
    auto& part = linear_.part[static_cast<std::size_t>(fold)];
    if (part == nullptr) part = linear_.whole->subset(out.in, execution_);
    out.part = {part.get()};
    return out;
  }
  // The rows of the fold come first among all, so that stored matrices, once they have them in front, serve both.
  std::vector<Index> all = out.in;
  all.insert(all.end(), out.held_out.begin(), out.held_out.end());
  out.places_in.resize(out.in.size());
  out.places_out.resize(out.held_out.size());
  std::iota(out.places_in.begin(), out.places_in.end(), Index(0));
  std::iota(out.places_out.begin(), out.places_out.end(), static_cast<Index>(out.in.size()));
  for (auto& each : prior_.kernels->template subset<T>(out.in, execution_)) {
    out.part.push_back(each.get());
    out.views.push_back(std::move(each));
  }
  for (auto& each : prior_.kernels->template subset<T>(all, execution_)) {
    out.whole.push_back(each.get());
    out.views.push_back(std::move(each));
  }
  return out;
}

/// K S on all rows.
template <class T>
Matrix<double> FoldFits<T>::product(const Problem& problem, const std::vector<Operator<T>*>& operators,
                                    const Matrix<double>& S, FoldOutcome& outcome) {
  Buffer<T> from(static_cast<std::size_t>(S.size())), to(from.size());
  convert(S.data(), from.data(), S.size(), execution_);
  KernelProduct<T>(problem, operators).apply(from.data(), to.data(), execution_);
  ++outcome.counters.products;
  Matrix<double> out(S.rows(), S.cols());
  convert(to.data(), out.data(), S.size(), execution_);
  return out;
}

template <class T>
template <class AnySpace>
void FoldFits<T>::fit(AnySpace& space, const Problem& problem, const Buffer<double>& before, FoldOutcome& outcome,
                      const Execution& execution) const {
  const Stopwatch watch(outcome.fit_seconds);
  if (!before.empty()) {
    start(space, before);
    space.rescale();
  }
  record(lbfgs(space, minimize_settings(problem, settings_.tolerance), report(outcome, execution)), outcome.gap,
         outcome);
  outcome.fit = point_of(space);
}

template <class T>
template <class AnySpace>
void FoldFits<T>::solve(AnySpace& space, const Problem& problem, const Buffer<double>& before, FoldOutcome& outcome,
                        const Execution& execution) const {
  const Stopwatch watch(outcome.adjoint_seconds);
  if (before.empty()) {
    space.start_at_zero();
  } else {
    start(space, before);
  }
  MinimizeSettings settings = minimize_settings(problem, settings_.adjoint_tolerance);
  settings.quadratic = true;
  settings.least_objective = negligible;
  record(nonlinear_cg(space, settings, report(outcome, execution)), outcome.adjoint_gap, outcome);
  outcome.adjoint = point_of(space);
}

template <class T>
template <class AnySpace>
void FoldFits<T>::fit_and_solve(AnySpace& space, Problem& problem, Index fold, const Buffer<double>& fit_before,
                                Buffer<double> adjoint_before, FoldOutcome& outcome, const Execution& execution) const {
  const Likelihood& trained = *problem.likelihood;
  fit(space, problem, fit_before, outcome, execution);
  Matrix<double> c = space.predictors();
  write(fold, c);
  const auto held_out = masked(cv_, fold, true);
  const TemperedLoss loss{*held_out, cv_.scores(), settings_.temperature};
  outcome.plain_value = loss.residual(c, outcome.temperature_gradient, execution);
  outcome.value = outcome.plain_value;
  if (!settings_.gradient) return;
  Matrix<double> residual = space.predictors();
  to_residual(trained, residual, execution);
  const Matrix<double> state = curvature_at(trained, space.predictors(), execution);
  const QuadraticLikelihood quadratic(trained, state, c, 0.0);
  problem.likelihood = &quadratic;
  if (!adjoint_before.empty()) put_known(space, c, adjoint_before);
  solve(space, problem, adjoint_before, outcome, execution);
  problem.likelihood = &trained;
  outcome.value -= inner(space, outcome.fit, execution) + inner_product(space.predictors(), residual, execution);
  determine_sides(*problem.prior.coupling, trained, state, residual, c, space.predictors(), outcome, execution);
}

template <class T>
double FoldFits<T>::bytes() const {
  // The point, its image, state, residuals, c and the last points, and the vectors of L-BFGS with their images.
  const Problem problem = make_problem(*prior_.coupling, 1);
  const int slots = lbfgs_slots(choose_history(problem, space_)) + (may_have_subspace_preconditioner(problem) ? 1 : 0);
  const double vectors = space_ == Space::weights ? 1.0 : 2.0 * slots + 4.0;
  return static_cast<double>(rows_ * classes_) * (8.0 * sizeof(double) + vectors * sizeof(T));
}

template <class T>
void FoldFits<T>::stacked(Index first_fold, Index count) {
  const Coupling& coupling = *prior_.coupling;
  if (space_ == Space::weights) {
    const auto trained = masked(cv_, first_fold, false);
    Problem problem = make_problem(coupling, 1);
    problem.likelihood = trained.get();
    if (linear_.features == nullptr) linear_.features = make_linear_features<T>(cv_.inputs(), 1.0, execution_);
    FoldOutcome outcome;
    WeightSpace<T> space(problem, *linear_.features, lbfgs_slots(choose_history(problem, space_)), execution_,
                         outcome.counters);
    const Index size = point_size(space);
    fit_and_solve(space, problem, first_fold, fits_.next(size), adjoints_.next(size), outcome, execution_);
    const Stopwatch watch(out_.gradient_seconds);
    if (settings_.gradient && outcome.alpha.empty()) {
      add_gradient(cv_.inputs(), coupling, outcome.fit, outcome.adjoint, settings_.kernel_gradient, out_, execution_);
    } else if (settings_.gradient) {
      add_gradient(cv_.inputs(), prior_, *linear_.features, as_matrix(outcome.alpha, rows_, classes_),
                   as_matrix(outcome.f, rows_, classes_), settings_.kernel_gradient, out_, execution_);
    }
    merge(outcome);
    return;
  }
  const std::vector<Operator<T>*> operators = whole_operators();
  Lockstep<T> lockstep(operators, count);
  std::vector<FoldOutcome> outcomes(static_cast<std::size_t>(count));
  const Index size = rows_ * classes_;
  lockstep.run(
      [&](Index k) {
        const Execution alone{1, nullptr};
        const auto trained = masked(cv_, first_fold + k, false);
        Problem problem = make_problem(coupling, 1);
        problem.likelihood = trained.get();
        FoldOutcome& outcome = outcomes[static_cast<std::size_t>(k)];
        CoefficientSpace<T> space(problem, lockstep.operators_of(k), lbfgs_slots(choose_history(problem, space_)),
                                  alone, outcome.counters);
        fit_and_solve(space, problem, first_fold + k, fits_.next(size, k), adjoints_.next(size, k), outcome, alone);
      },
      execution_);
  if (settings_.gradient) {
    const Stopwatch watch(out_.gradient_seconds);
    const ReplicatedCoupling replicated(coupling, count);
    Problem problem = make_problem(replicated, count);
    add_gradient(problem.prior, coupling, operators, side_by_side(outcomes, rows_, classes_, &FoldOutcome::left),
                 side_by_side(outcomes, rows_, classes_, &FoldOutcome::right), settings_.kernel_gradient, out_,
                 execution_);
    out_.products += static_cast<int>(count);
  }
  for (const FoldOutcome& outcome : outcomes) merge(outcome);
}

template <class T>
void FoldFits<T>::shuffled(Index fold) {
  const FoldRows<T> rows = operators_of(fold);
  const auto trained = cv_.likelihood().subset(rows.in, std::vector<double>(rows.in.size(), 1.0));
  const auto held_out = cv_.held_out().subset(rows.held_out, std::vector<double>(rows.held_out.size(), 1.0));
  const TemperedLoss loss{*held_out, cv_.scores(), settings_.temperature};
  const auto count_in = static_cast<Index>(rows.in.size());
  const Problem whole = make_problem(*prior_.coupling, 1);
  Problem problem = whole;
  problem.likelihood = trained.get();
  FoldOutcome outcome;
  CoefficientSpace<T> space(problem, rows.part, lbfgs_slots(choose_history(problem, space_)), execution_,
                            outcome.counters, rows.in);
  const Index size = point_size(space);
  fit(space, problem, fits_.next(size), outcome, execution_);
  Matrix<double> alpha(rows_, classes_);
  put_rows(as_matrix(outcome.fit, count_in, classes_), rows.places_in, alpha);
  const Matrix<double> u_out = rows_of(product(whole, rows.whole, alpha, outcome), rows.places_out);
  if (predictors_ != nullptr) put_rows(u_out, rows.held_out, *predictors_);
  Matrix<double> residual_out = u_out;
  outcome.plain_value = loss.residual(residual_out, outcome.temperature_gradient, execution_);
  outcome.value = outcome.plain_value;
  if (settings_.gradient) {
    Matrix<double> f(rows_, classes_);
    put_rows(residual_out, rows.places_out, f);
    const Matrix<double> image = product(whole, rows.whole, f, outcome);
    const Matrix<double> offset = rows_of(image, rows.places_in);
    Matrix<double> residual = space.predictors();
    to_residual(*trained, residual, execution_);
    const Matrix<double> state = curvature_at(*trained, space.predictors(), execution_);
    Matrix<double> c = offset;
    to_minus_hessian_product(*trained, state, c, execution_);
    // The system of all rows, with its solution at the held-out ones put in: the constant makes the values the same.
    const double constant = -0.5 * inner_product(offset, c, execution_) -
                            0.5 * inner_product(residual_out, rows_of(image, rows.places_out), execution_);
    const QuadraticLikelihood quadratic(*trained, state, c, constant);
    problem.likelihood = &quadratic;
    solve(space, problem, adjoints_.next(size), outcome, execution_);
    // f . K (alpha + r), with the held-out part of f: that of K f is in `offset`.
    outcome.value -= inner(space, outcome.fit, execution_) + inner_product(residual_out, u_out, execution_) +
                     inner_product(space.predictors(), residual, execution_) +
                     inner_product(offset, residual, execution_);
    determine_sides(*prior_.coupling, *trained, state, residual, c, space.predictors(), outcome, execution_);
    put_rows(as_matrix(outcome.left(), count_in, classes_), rows.places_in, alpha);
    put_rows(as_matrix(outcome.right(), count_in, classes_), rows.places_in, f);
    const Stopwatch watch(out_.gradient_seconds);
    add_gradient(whole.prior, *prior_.coupling, rows.whole, alpha, f, settings_.kernel_gradient, out_, execution_);
    ++outcome.counters.products;
  }
  merge(outcome);
}

template <class T>
void FoldFits<T>::exact(Index fold) {
  const auto trained = masked(cv_, fold, false);
  const auto held_out = masked(cv_, fold, true);
  Problem problem = make_problem(*prior_.coupling, 1);
  problem.likelihood = trained.get();
  FoldOutcome outcome;
  const std::vector<Operator<T>*> operators = whole_operators();
  CoefficientSpace<T> space(problem, operators, newton_slots, execution_, outcome.counters);
  {
    const Stopwatch watch(outcome.fit_seconds);
    const Buffer<double> before = fits_.next(point_size(space));
    if (!before.empty()) start(space, before);
    record(exact_newton(space, problem, minimize_settings(problem, settings_.tolerance), report(outcome, execution_),
                        execution_),
           outcome.gap, outcome);
    outcome.fit = point_of(space);
  }
  Matrix<double> c = space.predictors();
  write(fold, c);
  const TemperedLoss loss{*held_out, cv_.scores(), settings_.temperature};
  outcome.plain_value = loss.residual(c, outcome.temperature_gradient, execution_);
  outcome.value = outcome.plain_value;
  if (settings_.gradient) {
    Matrix<double> residual = space.predictors();
    to_residual(*trained, residual, execution_);
    const Matrix<double> state = curvature_at(*trained, space.predictors(), execution_);
    Matrix<double> image(rows_, classes_), f(rows_, classes_);
    {
      const Stopwatch watch(outcome.adjoint_seconds);
      std::transform(c.data(), c.data() + c.size(), c.data(), [](double value) { return -value; });
      space.kernel(c.data(), image.data());
      exact_steps(problem, execution_)->solve(state, c, image, 0.0, f);
      space.kernel(f.data(), image.data());
    }
    outcome.adjoint.assign(f.data(), f.data() + f.size());
    outcome.value -=
        dot(outcome.fit.data(), image.data(), image.size(), execution_) + inner_product(image, residual, execution_);
    const Stopwatch watch(out_.gradient_seconds);
    add_gradient(problem.prior, *prior_.coupling, operators, as_matrix(outcome.fit, rows_, classes_), f,
                 settings_.kernel_gradient, out_, execution_);
    ++outcome.counters.products;
  }
  merge(outcome);
}

template class FoldFits<float>;
template class FoldFits<double>;

}  // namespace taxolearn
