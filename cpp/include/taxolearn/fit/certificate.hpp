// The end of a fit: weights of the class functions at the point found, and a certificate: objective and duality gap
// there, from the inputs themselves, in double precision.
#pragma once

#include "taxolearn/base/parallel.hpp"
#include "taxolearn/fit/problem.hpp"
#include "taxolearn/fit/result.hpp"

namespace taxolearn {

/// From coefficients alpha (n x C). Linear kernel: weights variance X^T alpha G. Others: expansions, of alpha G or,
/// with own kernels, of the columns of alpha R. Intercepts: the intercept variance times 1^T alpha. Two products.
void certify(const Problem& problem, const Matrix<double>& alpha, FitResult& result, const Execution& execution);

/// From a point in the space of weights, W (d x columns of R) followed by b (C): weights sqrt(variance) W R^T,
/// intercepts sigma b. One product.
void certify(const Problem& problem, const Buffer<double>& point, FitResult& result, const Execution& execution);

/// The point in the space of weights that coefficients (n x C) stand for: sqrt(variance) X^T alpha R and sigma 1^T
/// alpha.
Buffer<double> weights_of(const Problem& problem, const Matrix<double>& alpha, const Execution& execution);

}  // namespace taxolearn
