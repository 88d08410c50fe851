#include "taxolearn/select/criterion.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fold_fit.hpp"
#include "taxolearn/base/check.hpp"
#include "taxolearn/base/stopwatch.hpp"
#include "taxolearn/fit/choose.hpp"
#include "taxolearn/operators/block_linear.hpp"
#include "taxolearn/operators/linear.hpp"
#include "temperature.hpp"

namespace taxolearn {
namespace {

constexpr Index columns_to_be_busy = 24;   // with so many a stored matrix is multiplied no faster than it is read
constexpr double share_for_vectors = 0.5;  // of the memory granted
constexpr double bytes_per_entry = 16.0;   // of a linear operator: both orders, an index and a value each

void check(const Prior& prior, const Likelihood& likelihood, const CriterionSettings& settings) {
  require(prior.coupling != nullptr, "the prior has no coupling");
  require(prior.coupling->classes() == likelihood.outputs(), "the coupling has ", prior.coupling->classes(),
          " classes, expected ", likelihood.outputs());
  const Index factors = prior.coupling->factors();
  require(std::isfinite(prior.intercept_variance) && prior.intercept_variance >= 0.0,
          "intercept_variance must be finite and at least 0, got ", prior.intercept_variance);
  const auto own = static_cast<Index>(prior.kernel_of.size());
  const Index kernels = prior.kernels == nullptr ? 0 : prior.kernels->count();
  require(kernels == 0 || prior.kernels->rows() == likelihood.rows(), "the kernels are over ",
          kernels == 0 ? 0 : prior.kernels->rows(), " rows, expected ", likelihood.rows());
  require(kernels > 0 || prior.variance == 1.0, "the linear kernel has variance ", prior.variance,
          ", expected 1: variances belong to the coupling");
  require(prior.block_variances.empty() || kernels == 0,
          "variances of blocks belong to the kernels, where there are some");
  require(own == 0 ? kernels <= 1 : own == factors, "there are ", kernels, " kernels, assigned to ", own,
          " functions, expected ", factors);
  require(own == 0 || !prior.coupling->parameter_of_factor().empty(),
          "kernels of their own need a coupling whose parameters are variances of functions");
  for (const Index l : prior.kernel_of)
    require(l >= 0 && l < kernels, "a function has kernel ", l, ", expected one of ", kernels);
  require(settings.tolerance > 0.0 && settings.adjoint_tolerance > 0.0, "tol must be positive, got ",
          settings.tolerance, " and ", settings.adjoint_tolerance);
  require(std::isfinite(settings.temperature) && settings.temperature > 0.0,
          "temperature must be positive and finite, got ", settings.temperature);
  require(settings.method == Method::automatic || settings.method == Method::lbfgs || settings.method == Method::exact,
          "the method of cross-validation is \"lbfgs\" or \"exact\"");
  require(settings.method != Method::exact || prior.coupling->is_diagonal(),
          "method \"exact\" is for flat models; choose another method, or coupling \"identity\"");
}

/// What `automatic` means. Stacked folds read a kernel matrix, or compute its entries, once for all of them, but work
/// on all rows; shuffled ones leave out what they hold out.
Strategy choose_strategy(const CrossValidation& cv, const Prior& prior, const CriterionSettings& settings,
                         Space space) {
  const KernelMatrices* const kernels = prior.kernels;
  const double parts = bytes_per_entry * static_cast<double>(input_entries(cv.inputs()) * cv.folds().count);
  if (kernels == nullptr) {
    const LinearAlgorithm algorithm = choose_linear_algorithm(cv.inputs());
    const bool shuffled = space == Space::coefficients && algorithm != LinearAlgorithm::stored &&
                          parts <= share_for_vectors * settings.memory_limit;
    return shuffled ? Strategy::shuffled : Strategy::stacked;
  }
  if (kernels->algorithm() != KernelAlgorithm::gram) return Strategy::stacked;
  const Index columns =
      prior.kernel_of.empty() ? cv.likelihood().outputs() : prior.coupling->factors() / kernels->count();
  return columns >= columns_to_be_busy ? Strategy::shuffled : Strategy::stacked;
}

/// An operator of blocks takes other factors; one that has multiplied them out is dropped.
template <class Any, class T>
void set_block_factors(std::unique_ptr<Any>& op, const InputView& X) {
  if (auto* const blocks = dynamic_cast<BlockLinear<T>*>(op.get())) {
    blocks->set_factors(X);
  } else {
    op.reset();
  }
}

}  // namespace

template <class T>
void LinearParts<T>::set_factors(const InputView& X) {
  set_block_factors<Operator<T>, T>(whole, X);
  for (auto& each : part) set_block_factors<Operator<T>, T>(each, X);
  set_block_factors<FeatureOperator<T>, T>(features, X);
}

CrossValidation::CrossValidation(const InputView& X, const Likelihood& likelihood, Folds folds,
                                 const Likelihood* held_out)
    : X_(X),
      likelihood_(likelihood),
      held_out_(held_out == nullptr ? likelihood : *held_out),
      folds_(std::move(folds)) {
  require(held_out_.rows() == likelihood.rows() && held_out_.outputs() == likelihood.outputs(),
          "the loss of held-out rows is that of ", held_out_.rows(), " rows and ", held_out_.outputs(),
          " classes, expected ", likelihood.rows(), " and ", likelihood.outputs());
  const Index n = input_rows(X);
  require(n == likelihood.rows(), "X has ", n, " rows but there are ", likelihood.rows(), " labels");
  require(folds_.rows() == n, "fold_of has ", folds_.rows(), " elements, expected ", n);
  require(folds_.count >= 1, "n_folds must be at least 1, got ", folds_.count);
  std::vector<Index> sizes(static_cast<std::size_t>(folds_.count), 0);
  for (const Index fold : folds_.of_row) {
    require(fold >= -1 && fold < folds_.count, "fold_of contains ", fold, ", expected -1 .. ", folds_.count - 1);
    if (fold >= 0) ++sizes[static_cast<std::size_t>(fold)];
  }
  for (const Index size : sizes)
    require(size > 0 && size < n, "a fold holds out ", size, " of ", n, " rows, expected some and not all");
}

Link CrossValidation::scores() const {
  const bool one_of = held_out_.link() == Link::softmax && likelihood_.link() == Link::logistic;
  return one_of ? Link::one_of : held_out_.link();
}

template <class T>
void CrossValidation::run(const Prior& prior, const CriterionSettings& settings, const WarmStart& before,
                          Criterion& out, const Execution& execution) {
  Matrix<double> kept;
  if (!settings.learn_temperature) {
    if (settings.keep_predictors) kept = Matrix<double>(likelihood_.rows(), likelihood_.outputs());
    run_folds<T>(prior, settings, before, settings.keep_predictors ? &kept : nullptr, out, execution);
    out.predictors = std::move(kept);
    return;
  }
  // The temperature has to be known before the systems: the fits come first, then both begin where these ended.
  CriterionSettings at_best = settings;
  at_best.gradient = false;
  at_best.temperature = 1.0;
  BestTemperature best;
  {
    Matrix<double> predictors(likelihood_.rows(), likelihood_.outputs());
    run_folds<T>(prior, at_best, before, &predictors, out, execution);
    if (settings.keep_predictors) kept = predictors;
    std::vector<Index> rows(folds_.of_row.size());
    std::iota(rows.begin(), rows.end(), Index(0));
    std::vector<double> factors;
    for (const Index fold : folds_.of_row) factors.push_back(fold >= 0 ? 1.0 : 0.0);
    best = best_temperature(*held_out_.subset(rows, factors), scores(), std::move(predictors), execution);
  }
  if (settings.gradient && out.converged) {
    at_best.gradient = true;
    at_best.temperature = best.temperature;
    const WarmStart reached{std::move(last_.fits), before.adjoints};
    Criterion again;
    run_folds<T>(prior, at_best, reached, nullptr, again, execution);
    again.products += out.products;
    again.iterations += out.iterations;
    again.fit_seconds += out.fit_seconds;
    out = std::move(again);
  } else {
    out.value = out.plain_value = best.loss;
  }
  out.predictors = std::move(kept);
  out.temperature = best.temperature;
  out.temperature_gradient += std::log(best.temperature);
  out.value += best.penalty;
  out.plain_value += best.penalty;
}

template <class T>
void CrossValidation::run_folds(const Prior& prior, const CriterionSettings& settings, const WarmStart& before,
                                Matrix<double>* predictors, Criterion& out, const Execution& execution) {
  KernelMatrices* const kernels = prior.kernels;
  out.counters.precision = sizeof(T) == sizeof(float) ? Precision::single : Precision::double_;
  const Index gradients = kernels != nullptr ? kernels->count() : input_blocks(X_) != nullptr ? 1 : 0;
  out.kernel_gradient.assign(static_cast<std::size_t>(gradients), {});
  out.function_gradient.assign(static_cast<std::size_t>(prior.coupling->parameters()), 0.0);
  if (kernels != nullptr) {
    kernels->operators<T>(execution);  // decides on the algorithm
    out.counters.reason = kernels->reason();
    out.counters.kernel_bytes = kernels->bytes();
  }
  Problem problem;
  problem.X = X_;
  problem.likelihood = &likelihood_;
  problem.prior = prior;
  FitSettings fit_settings;
  fit_settings.method = settings.method;
  fit_settings.space = settings.space;
  const Space space = choose_space(problem, fit_settings);
  require(space == Space::coefficients || kernels == nullptr, "space \"weights\" needs the linear kernel");
  out.counters.space = space;

  WarmStart after;
  FoldFits<T> folds(*this, prior, settings, std::get<LinearParts<T>>(linear_), space, before, after, out, execution);
  folds.write_predictors(predictors);
  out.temperature = settings.temperature;
  out.strategy = settings.strategy;
  if (out.strategy == Strategy::automatic) out.strategy = choose_strategy(*this, prior, settings, space);
  if (space == Space::weights) out.strategy = Strategy::stacked;
  if (kernels != nullptr && kernels->algorithm() == KernelAlgorithm::low_rank) out.strategy = Strategy::stacked;
  if (settings.method == Method::exact) {
    out.strategy = Strategy::stacked;
    for (Index k = 0; k < folds_.count; ++k) folds.exact(k);
  } else if (out.strategy == Strategy::shuffled) {
    for (Index k = 0; k < folds_.count; ++k) folds.shuffled(k);
  } else {
    const double affordable = share_for_vectors * settings.memory_limit / folds.bytes();
    const Index most = space == Space::weights ? 1 : folds_.count;
    const Index together = std::clamp<Index>(static_cast<Index>(std::min(affordable, 1e6)), 1, most);
    for (Index k = 0; k < folds_.count; k += together) folds.stacked(k, std::min(together, folds_.count - k));
  }
  last_ = std::move(after);
}

void CrossValidation::set_block_variances(std::vector<double> variances) {
  const std::vector<InputBlock> before = *input_blocks(X_);
  if (variances.empty()) variances.assign(before.size(), 1.0);
  X_ = with_variances(X_, variances);
  const auto& after = *input_blocks(X_);
  const auto same = [](const InputBlock& a, const InputBlock& b) { return a.factor == b.factor; };
  if (std::equal(before.begin(), before.end(), after.begin(), same)) return;
  std::get<LinearParts<float>>(linear_).set_factors(X_);
  std::get<LinearParts<double>>(linear_).set_factors(X_);
}

Criterion CrossValidation::evaluate(const Prior& prior, const CriterionSettings& settings, const Execution& execution) {
  check(prior, likelihood_, settings);
  if (input_blocks(X_) != nullptr) set_block_variances(prior.block_variances);
  Criterion out;
  Problem problem;
  problem.X = X_;
  problem.likelihood = &likelihood_;
  problem.prior = prior;
  const bool single =
      settings.precision == Precision::single ||
      (settings.precision == Precision::automatic && settings.method != Method::exact && single_is_worthwhile(problem));
  double seconds = 0.0;
  {
    const Stopwatch watch(seconds);
    if (single) run<float>(prior, settings, accepted_, out, execution);
    if (!single || (!out.converged && settings.precision == Precision::automatic)) {
      const WarmStart reached = single ? std::move(last_) : WarmStart();
      Criterion again;
      run<double>(prior, settings, single ? reached : accepted_, again, execution);
      again.products += out.products;
      again.iterations += out.iterations;
      out = std::move(again);
    }
  }
  out.total_seconds = seconds;
  if (!settings.gradient) {
    out.kernel_gradient.clear();
    out.function_gradient.clear();
  }
  return out;
}

void CrossValidation::accept() {
  require(!last_.fits.empty(), "there is no evaluation to accept");
  if (last_.adjoints.empty()) last_.adjoints = std::move(accepted_.adjoints);
  accepted_ = last_;
}

}  // namespace taxolearn
