// The linear kernel M = variance * X X^T on sparse or dense inputs (Seeger 2008, appendix D.3).
//
// Algorithms, chosen by cost and named by algorithm():
//   sparse  X (X^T S) as two sparse products, with X^T and with X, both kept (4 C flops per nonzero)
//   dense   X (X^T S) as two matrix products (4 n d C flops)
//   blocks  of inputs in blocks, the sum of these over the blocks (block_linear.hpp)
//   stored  X X^T computed once (2 n^2 C flops): for few rows
// The one parameter theta is log variance; inputs in blocks have one each.
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

  /// out += M S, and out += Z W.
  virtual void add_apply(DenseView<const T> S, DenseView<T> out, const Execution& execution) = 0;
  virtual void add_expand(DenseView<const T> W, DenseView<T> out, const Execution& execution) = 0;

  void set_variance(double variance);

 protected:
  InputRows rows_;
  double variance_;
};

/// How the columns of X are arranged in an operator's own copy of sparse inputs.
enum class FeatureOrder {
  given,    ///< as in the inputs: for products with weights
  compact,  ///< most frequent first, those of a single row folded into a diagonal: for kernel products only
};

/// The operator of one matrix, or of some of its rows, with the algorithm `sparse` or `dense`.
template <class T>
std::unique_ptr<Linear<T>> make_matrix_linear(InputRows rows, double variance, FeatureOrder order,
                                              const Execution& execution);

enum class LinearAlgorithm { automatic, sparse, dense, blocks, stored };

/// The operator for kernel products n x m -> n x m. Sparse inputs know `sparse` and `stored`, dense ones
/// `dense` and `stored`, blocks `blocks` and `stored`.
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
