// Certificate of a fit: objective and duality gap of given weights, from the inputs themselves, in double
// precision.
#pragma once

#include "taxolearn/klr/problem.hpp"

namespace taxolearn {

/// coef (d x C) = variance X^T alpha and the intercepts sigma2 1^T alpha, with alpha (n x C).
void recover_weights(const Problem& problem, const Matrix<double>& alpha, Matrix<double>& coef,
                     std::vector<double>& intercepts, const Execution& execution);

/// Sets objective, gap and relative gap of result.weights and result.intercepts. Costs one product.
void certify(const Problem& problem, Result& result, const Execution& execution);

}  // namespace taxolearn
