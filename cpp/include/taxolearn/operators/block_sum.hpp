// A sum of kernels over blocks of the inputs, some of them linear: M = sum_b M_b.
//
// The linear ones are multiplied by their features, exactly and cheaply; the others have another operator, tiled or
// low_rank, of all these blocks at once.
#pragma once

#include <memory>
#include <vector>

#include "taxolearn/kernels/kernel.hpp"
#include "taxolearn/operators/linear.hpp"
#include "taxolearn/operators/operator.hpp"

namespace taxolearn {

/// Whether a kernel has blocks of both kinds.
bool is_partly_linear(const Kernel& kernel);

/// Of a kernel that is partly linear, the sum over the other blocks; and both kinds of blocks of the inputs.
std::shared_ptr<const Kernel> other_kernels(const Kernel& kernel);
InputView other_blocks(const Kernel& kernel, const InputView& X);
InputView linear_blocks(const Kernel& kernel, const InputView& X);

/// Of a kernel that is partly linear. Holds a view: the inputs must outlive it.
template <class T>
class BlockSum final : public Operator<T> {
 public:
  /// `rest` is an operator of other_kernels on other_blocks.
  BlockSum(std::shared_ptr<const Kernel> kernel, InputRows rows, std::unique_ptr<Operator<T>> rest,
           const Execution& execution);

  Index rows() const override { return rows_.count(); }
  void apply(DenseView<const T> S, DenseView<T> out, const T* shift, const Execution& execution) override;
  void apply_cross(const InputView& Xnew, DenseView<const T> S, DenseView<T> out, const Execution& execution) override;
  void diag(double* out) const override { kernel_->diag(rows_, out); }
  Index parameters() const override { return kernel_->parameters(); }
  void bilinear_grad(DenseView<const T> E, DenseView<const T> F, double* gradient, const Execution& execution) override;
  std::unique_ptr<Operator<T>> subset(const std::vector<Index>& rows, const Execution& execution) override;
  std::string algorithm() const override { return rest_->algorithm(); }

 private:
  std::shared_ptr<const Kernel> kernel_;
  InputRows rows_;
  std::vector<std::unique_ptr<Linear<T>>> linear_;  ///< per block; null where its kernel is not linear
  std::unique_ptr<Operator<T>> rest_;               ///< of all other blocks
};

}  // namespace taxolearn
