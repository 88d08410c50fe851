// The last pass of an evaluation: derivatives of alpha . K f by all parameters of K.
#pragma once

#include <vector>

#include "taxolearn/klr/problem.hpp"
#include "taxolearn/operators/operator.hpp"
#include "taxolearn/select/criterion.hpp"

namespace taxolearn {

/// Adds the derivatives to `out`, for coefficients alpha and f (n x copies C) of some folds. The problem has replicated
/// parts; `coupling` is the one behind them, with a parameter per factor.
template <class T>
void add_gradient(const Problem& problem, const Coupling& coupling, const std::vector<Operator<T>*>& operators,
                  const Matrix<double>& alpha, const Matrix<double>& f, bool kernel_gradient, Criterion& out,
                  const Execution& execution);

/// The same of the linear kernel in the space of weights: points W (d x copies factors) followed by b (copies C).
void add_gradient(const Coupling& coupling, Index copies, const Buffer<double>& point, const Buffer<double>& adjoint,
                  Criterion& out, const Execution& execution);

}  // namespace taxolearn
