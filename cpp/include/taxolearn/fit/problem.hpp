// Kernel logistic regression: what to solve, how, and what came out.
//
//   Phi(alpha) = f(u) + 1/2 alpha . u,   u = K alpha = M alpha G + sigma2 1 1^T alpha,
//
// with f the likelihood's loss, M the kernel matrix of the inputs and G = R R^T the coupling of the classes (the
// identity for a flat model). The columns of R may have kernels of their own (kernel_product.hpp). The linear kernel M
// = variance X X^T has a second form, in weights: u = sqrt(variance) X W R^T + sigma 1 b^T and Phi = f(u) + 1/2 |W|^2 +
// 1/2 |b|^2; W has a column per column of R, b an element per class.
#pragma once

#include <string>
#include <vector>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"
#include "taxolearn/couplings/coupling.hpp"
#include "taxolearn/data/input.hpp"
#include "taxolearn/likelihood/likelihood.hpp"
#include "taxolearn/operators/kernel_matrices.hpp"
#include "taxolearn/solver/minimize.hpp"

namespace taxolearn {

struct Problem {
  InputView X;                             ///< n x d
  const Likelihood* likelihood = nullptr;  ///< of n rows and C classes
  double variance = 1.0;                   ///< of the linear kernel, > 0
  double sigma2 = 1.0;                     ///< prior variance of the intercepts, >= 0; 0 means no intercepts
  const Coupling* coupling = nullptr;      ///< of the C classes; null: the identity
  KernelMatrices* kernels = nullptr;       ///< over X; null: the linear kernel
  std::vector<Index> kernel_of = {};       ///< which of these each column of R has; empty: there is one, for all
};

/// Columns of R.
inline Index factor_count(const Problem& problem) {
  return problem.coupling == nullptr ? problem.likelihood->classes() : problem.coupling->factors();
}

enum class Method {
  lbfgs,
  nonlinear_cg,
  newton,  ///< linear systems by conjugate gradients
  exact,   ///< Newton with linear systems by Cholesky factors: O(C n^3), flat models only
};

/// The vectors that the solver works on. Both give the same iterates, up to rounding.
enum class State {
  automatic,     ///< the smaller one; coefficients unless the kernel is linear
  coefficients,  ///< alpha, n x C, in the kernel's metric
  weights,       ///< W, d x columns of R, and b
};

/// Precision of the kernel products. Points and sums are in double precision always.
enum class Precision {
  automatic,  ///< single for large problems, double once single has come to its limit
  single,
  double_,
};

struct Settings {
  Method method = Method::lbfgs;
  State state = State::automatic;
  Precision precision = Precision::automatic;
  double tolerance = 1e-6;  ///< on the certified gap relative to the objective
  int max_iterations = 1000;
  int history = 0;          ///< pairs of L-BFGS; 0: few where a vector is n x C with its image, more where it is small
  bool keep_point = false;  ///< whether the result has the point that the solver came to
};

/// Where to begin. All null: at zero.
struct Start {
  const double* coefficients = nullptr;  ///< alpha, n x C
  const double* predictors = nullptr;    ///< u at the rows, n x C: coefficients are guessed from the residuals
  const double* weights = nullptr;       ///< coef (d x C) followed by the intercepts (C)
  const double* point = nullptr;         ///< Result::point of a fit with the same inputs, coupling and state
};

/// Seconds by phase.
struct Timings {
  double setup = 0.0;        ///< arranging the inputs, allocating
  double products = 0.0;     ///< kernel products
  double likelihood = 0.0;   ///< residuals and line searches
  double vectors = 0.0;      ///< inner products and combinations, systems with a guess at the Hessian
  double certificate = 0.0;  ///< final weights and their gap in double precision
  double total = 0.0;
};

/// Functions u_k(x) = sum_i coefficients[i, k] k_l(x, x_i) over some rows of the inputs: what prediction needs of
/// kernel l.
struct Expansion {
  std::vector<Index> basis;     ///< rows of X; empty: all
  Matrix<double> coefficients;  ///< basis x functions
};

struct Result {
  Status status = Status::max_iter;
  int iterations = 0;
  int products = 0;           ///< kernel products of any precision, those of the certificate included
  double objective = 0.0;     ///< Phi at the weights returned
  double gap = 0.0;           ///< certified in double precision: Phi - min Phi <= gap
  double relative_gap = 0.0;  ///< gap / objective
  std::string algorithm;      ///< of the kernel products: sparse, dense, stored, gram, tiled or low_rank
  std::string reason;         ///< why this one; empty for the linear kernel
  double kernel_bytes = 0.0;  ///< of stored kernel matrices or their factors
  std::vector<Index> ranks;   ///< of the factors, under low_rank
  std::string state;          ///< coefficients or weights
  std::string precision;      ///< of the last products: single or double
  Timings timings;
  Matrix<double> weights;  ///< d x C: u(x) = weights^T x + intercepts; of the linear kernel only
  std::vector<double> intercepts;
  std::vector<Expansion> expansions;  ///< per kernel, else
  Buffer<double> point;               ///< if it was to be kept: alpha (n x C), or W followed by b
};

/// Numbers in a point of this state.
inline Index point_size(const Problem& problem, State state) {
  const Index classes = problem.likelihood->classes();
  if (state == State::coefficients) return input_rows(problem.X) * classes;
  return input_features(problem.X) * factor_count(problem) + classes;
}

/// What a problem of this kind means by `automatic`.
State choose_state(const Problem& problem, const Settings& settings);

/// Pairs that L-BFGS keeps where nothing is said.
int choose_history(const Problem& problem, State state);

/// Whether products in single precision pay: with less work, the time goes elsewhere.
bool single_pays(const Problem& problem);

/// Fits and certifies. Throws InvalidArgument for bad input and Interrupted when the monitor says so;
/// everything else is told by Result::status.
Result fit(const Problem& problem, const Settings& settings, const Start& start, const Execution& execution);

enum class Output { predictor, probability, log_probability };

/// out (rows of X x C) = u(x) = weights^T x + intercepts, or its softmax, or the logarithm of that. All sums are in
/// double precision.
void predict(const InputView& X, DenseView<const double> weights, const double* intercepts, Output output,
             DenseView<double> out, const Execution& execution);
void predict(const InputView& X, DenseView<const float> weights, const double* intercepts, Output output,
             DenseView<double> out, const Execution& execution);

/// A kernel expansion to predict with: the kernel, the inputs of its basis, and coefficients.
struct Term {
  std::shared_ptr<const Kernel> kernel;
  InputView basis;
  DenseView<const double> coefficients;  ///< rows of the basis x functions
};

/// The same from kernel expansions. With one term its functions are those of the classes; with several, all functions
/// together are those of the columns of R, in the order of their kernels.
void predict(const InputView& X, const std::vector<Term>& terms, const std::vector<Index>& kernel_of,
             const Coupling* coupling, const double* intercepts, Output output, DenseView<double> out,
             const Execution& execution);

}  // namespace taxolearn
