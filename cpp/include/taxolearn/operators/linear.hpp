// The linear kernel M = variance * X X^T on sparse or dense inputs (Seeger 2008, appendix D.3).
//
// Three algorithms, chosen by cost and named by algorithm():
//   sparse  X (X^T S) as two sparse products, with X^T and with X, both kept (4 C flops per nonzero)
//   dense   X (X^T S) as two matrix products (4 n d C flops)
//   stored  X X^T computed once (2 n^2 C flops): for few rows
// The one parameter theta is log variance.
#pragma once

#include <memory>

#include "taxolearn/kernels/kernel.hpp"
#include "taxolearn/operators/operator.hpp"

namespace taxolearn {

/// What every linear operator does the same way, from the inputs themselves. Holds a view: the inputs must
/// outlive it.
template <class T>
class Linear : public FeatureOperator<T> {
 public:
  Linear(InputRows rows, double variance);

  Index rows() const override { return rows_.count(); }
  Index features() const override { return input_features(rows_.X); }
  void apply_cross(const InputView& Xnew, DenseView<const T> S, DenseView<T> out, const Execution& execution) override;
  void diag(double* out) const override;
  Index parameters() const override { return 1; }
  void bilinear_grad(DenseView<const T> E, DenseView<const T> F, double* gradient, const Execution& execution) override;

 protected:
  InputRows rows_;
  double variance_;
};

enum class LinearAlgorithm { automatic, sparse, dense, stored };

/// The operator for kernel products n x m -> n x m. Sparse inputs know `sparse` and `stored`, dense ones
/// `dense` and `stored`.
template <class T>
std::unique_ptr<Operator<T>> make_linear(const InputView& X, double variance, LinearAlgorithm algorithm,
                                         const Execution& execution);

/// The operator whose features are Z = sqrt(variance) X, in the order of the inputs' columns.
template <class T>
std::unique_ptr<FeatureOperator<T>> make_linear_features(const InputView& X, double variance,
                                                         const Execution& execution);

/// What `automatic` stands for.
LinearAlgorithm choose_linear_algorithm(const InputView& X);

}  // namespace taxolearn
