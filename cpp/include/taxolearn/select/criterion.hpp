// The cross-validation criterion and its gradient (Seeger 2008, 4 and 5.2).
//
//   Psi = sum over folds of the loss of the rows I held out, at predictors K_IJ alpha fitted to the other rows J.
//
// With r_I the residual of the held-out rows, H the Hessian of the loss of J at the fit, and dK the change of the prior
// covariance, dPsi = sum over folds of alpha . (dK) f, where f solves (I + H K) f = e_I r_I (e_I: zeros but at I; H is
// zero there). The solution of that system also corrects Psi for the error of the fit (a dual-weighted residual): with
// R = alpha + r the residual of the fit, Psi - (K f) . R is off by a product of errors only. Neither the fits nor the
// systems know how many parameters there are; a last pass over the kernel finds all derivatives at once.
//
// The loss of held-out rows is that of softmax(s / T) at a temperature T, which divides the scores s: predictors, or for
// losses of independent outputs their logarithms of logistic probabilities. T can be learned: at every prior it is the
// one of least Psi + (log T)^2 / 2, so that it takes no part in the search, and dPsi is as above.
//
// Both are fits to the same solver: the system is that of a quadratic likelihood. Folds are treated in one of two ways:
//   stacked   in lockstep, as columns of the same products over all rows, held-out ones with weight zero
//   shuffled  one after the other, each on its own rows
#pragma once

#include <memory>
#include <tuple>
#include <vector>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"
#include "taxolearn/fit/problem.hpp"
#include "taxolearn/fit/result.hpp"
#include "taxolearn/select/folds.hpp"

namespace taxolearn {

enum class Strategy { automatic, stacked, shuffled };

struct CriterionSettings {
  double tolerance = 1e-4;            ///< on the relative gap of the fits
  double adjoint_tolerance = 1e-4;    ///< the same of the linear systems
  int max_iterations = 1000;          ///< of each
  bool gradient = true;               ///< else the systems are left out and Psi is not corrected
  bool keep_predictors = false;       ///< of the held-out rows, in the result
  bool kernel_gradient = true;        ///< else derivatives by the kernels' parameters are left out
  double temperature = 1.0;           ///< of the held-out rows
  bool learn_temperature = false;     ///< else it stays as given
  Method method = Method::automatic;  ///< which means lbfgs; or exact
  Strategy strategy = Strategy::automatic;
  Precision precision = Precision::automatic;
  Space space = Space::automatic;
  double memory_limit = 4e9;  ///< bytes that vectors and arrangements of the linear kernel may take, half of it each
};

struct Criterion {
  double value = 0.0;  ///< corrected
  double plain_value = 0.0;
  double temperature = 1.0;                          ///< given, or the best one
  double temperature_gradient = 0.0;                 ///< by its logarithm; about zero at the best one
  std::vector<std::vector<double>> kernel_gradient;  ///< per kernel, all parameters, log scale; one for linear blocks
  std::vector<double> function_gradient;             ///< by the parameters of the coupling
  double intercept_variance_gradient = 0.0;          ///< by its logarithm
  Matrix<double> predictors;                         ///< of the held-out rows, zero for others; if they were to be kept
  bool converged = true;                             ///< all gaps are within the tolerances
  double gap = 0.0;                                  ///< largest relative gap of a fit
  double adjoint_gap = 0.0;
  int products = 0;  ///< of the size of one fold
  int iterations = 0;
  Strategy strategy = Strategy::stacked;
  double fit_seconds = 0.0;
  double adjoint_seconds = 0.0;
  double gradient_seconds = 0.0;
  double total_seconds = 0.0;
  FitResult counters;  ///< algorithm, reason, space, precision and times of the solver
};

/// Where the fits and the systems ended, in single precision, fold after fold: where the next evaluation starts.
struct WarmStart {
  Buffer<float> fits;
  Buffer<float> adjoints;
};

/// Operators of the linear kernel of variance 1, made when they are needed. They do not depend on the hyperparameters,
/// except for the variances of blocks.
template <class T>
struct LinearParts {
  /// Takes the factors of these inputs, which have the same blocks.
  void set_factors(const InputView& X);

  std::unique_ptr<Operator<T>> whole;              ///< all rows
  std::vector<std::unique_ptr<Operator<T>>> part;  ///< per fold, the rows trained on
  std::unique_ptr<FeatureOperator<T>> features;    ///< all rows
};

class CrossValidation {
 public:
  /// Views of the inputs, the likelihood and the loss of held-out rows, null for the likelihood: they must outlive it.
  CrossValidation(const InputView& X, const Likelihood& likelihood, Folds folds, const Likelihood* held_out = nullptr);

  /// Evaluates a prior, which needs a coupling. Its kernels are over the same inputs; the linear kernel has variance 1,
  /// and so has each block of the inputs unless the prior says otherwise.
  /// Starts from the accepted points. `converged` is false if anything went wrong with the numbers.
  Criterion evaluate(const Prior& prior, const CriterionSettings& settings, const Execution& execution);

  /// Makes the points of the last evaluation the accepted ones.
  void accept();

  const WarmStart& accepted() const { return accepted_; }
  void restore(WarmStart points) { accepted_ = std::move(points); }

  const InputView& inputs() const { return X_; }
  const Likelihood& likelihood() const { return likelihood_; }
  const Folds& folds() const { return folds_; }

  /// The loss of held-out rows, and the link from predictors to the scores that it takes.
  const Likelihood& held_out() const { return held_out_; }
  Link scores() const;

 private:
  /// At the best temperature, if it is to be learned.
  template <class T>
  void run(const Prior& prior, const CriterionSettings& settings, const WarmStart& before, Criterion& out,
           const Execution& execution);
  /// At the one given. Writes the predictors of held-out rows, if there is a place for them.
  template <class T>
  void run_folds(const Prior& prior, const CriterionSettings& settings, const WarmStart& before,
                 Matrix<double>* predictors, Criterion& out, const Execution& execution);

  void set_block_variances(std::vector<double> variances);  ///< none: 1 each

  InputView X_;  ///< its blocks have the factors of the last prior
  const Likelihood& likelihood_;
  const Likelihood& held_out_;
  Folds folds_;
  WarmStart accepted_, last_;
  std::tuple<LinearParts<float>, LinearParts<double>> linear_;
};

}  // namespace taxolearn
