// Newton's method (Seeger 2008, 5.1), without division by probabilities.
//
// With g = alpha + r the gradient's coefficients and V V^T = H the Hessian of the loss, the step s solves (I + H K) s =
// -g. By preconditioned conjugate gradients: s = -g + V q where
//   (I + V^T K V) q = V^T K g.
// Nothing is divided by pi (which may be 0), and the residual of the Newton equation is V times the residual of the
// system, so conjugate gradients stop on |V residual| <= eta |g|. By Cholesky factors: solver/exact.hpp.
#pragma once

#include "taxolearn/fit/spaces.hpp"

namespace taxolearn {

constexpr int newton_slots = 2;

class NewtonSteps {
 public:
  virtual ~NewtonSteps() = default;

  /// step ~ -(I + H K)^-1 gradient to a relative error of about eta, from the likelihood's curvature at the predictors
  /// and the image K gradient. All n x C.
  virtual void solve(const Matrix<double>& curvature, const Matrix<double>& gradient, const Matrix<double>& image,
                     double eta, Matrix<double>& step) = 0;
};

/// Steps by Cholesky factors.
std::unique_ptr<NewtonSteps> exact_steps(const Problem& problem, const Execution& execution);

/// Linear systems by conjugate gradients.
template <class T>
MinimizeResult newton(CoefficientSpace<T>& space, const Problem& problem, const MinimizeSettings& settings,
                      const Report& report, const Execution& execution);

/// Linear systems by Cholesky factors (Seeger 2008, appendix C). The coupling must be diagonal.
template <class T>
MinimizeResult exact_newton(CoefficientSpace<T>& space, const Problem& problem, const MinimizeSettings& settings,
                            const Report& report, const Execution& execution);

}  // namespace taxolearn
