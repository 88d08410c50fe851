// The last pass of an evaluation: derivatives of alpha . K f by all parameters of K.
#pragma once

#include <vector>

#include "taxolearn/fit/prior.hpp"
#include "taxolearn/operators/operator.hpp"
#include "taxolearn/select/criterion.hpp"

namespace taxolearn {

/// Adds the derivatives to `out`, for coefficients alpha and f (n x copies C) of some folds. The prior has replicated
/// parts; `coupling` is the one behind them.
template <class T>
void add_gradient(const Prior& prior, const Coupling& coupling, const std::vector<Operator<T>*>& operators,
                  const Matrix<double>& alpha, const Matrix<double>& f, bool kernel_gradient, Criterion& out,
                  const Execution& execution);

/// The same of the linear kernel of X in the space of weights, for points W (d x factors) followed by b (C). The
/// coupling must know its gradient by factor. The kernel's parameters are the variances of blocks, if X has some.
void add_gradient(const InputView& X, const Coupling& coupling, const Buffer<double>& point,
                  const Buffer<double>& adjoint, bool kernel_gradient, Criterion& out, const Execution& execution);

/// The same for any coupling, from coefficients alpha and f (n x C).
template <class T>
void add_gradient(const InputView& X, const Prior& prior, FeatureOperator<T>& features, const Matrix<double>& alpha,
                  const Matrix<double>& f, bool kernel_gradient, Criterion& out, const Execution& execution);

}  // namespace taxolearn
