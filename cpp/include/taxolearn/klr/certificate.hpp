// The end of a fit: weights of the class functions at the point found, and a certificate: objective and duality gap
// there, from the inputs themselves, in double precision.
#pragma once

#include "taxolearn/klr/problem.hpp"
#include "taxolearn/operators/operator.hpp"

namespace taxolearn {

/// From coefficients alpha (n x C) of the linear kernel: weights variance X^T alpha G, intercepts sigma2 1^T alpha. The
/// gap's own product, g . K g with the gradient g from exact predictors, is left to the operator, which may be less
/// precise. Two products.
template <class T>
void conclude(const Problem& problem, Operator<T>& linear, const Matrix<double>& alpha, Result& result,
              const Execution& execution);

/// The same of other kernels: expansions, of alpha G or, with own kernels, of the columns of alpha R.
void conclude(const Problem& problem, const Matrix<double>& alpha, Result& result, const Execution& execution);

/// From a point in the space of weights, W (d x columns of R) followed by b (C): weights sqrt(variance) W R^T,
/// intercepts sigma b. One product.
void conclude(const Problem& problem, const Buffer<double>& point, Result& result, const Execution& execution);

/// The point in the space of weights that coefficients (n x C) stand for: sqrt(variance) X^T alpha R and sigma 1^T
/// alpha.
Buffer<double> weights_of(const Problem& problem, const Matrix<double>& alpha, const Execution& execution);

}  // namespace taxolearn
