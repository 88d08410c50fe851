// Any kernel with its matrix computed anew in every product, tile by tile: for more rows than memory can hold the
// matrix of. The matrix is symmetric, so a product asks for half of the entries.
#pragma once

#include <memory>

#include "taxolearn/kernels/kernel.hpp"
#include "taxolearn/operators/operator.hpp"
#include "taxolearn/operators/symmetric_product.hpp"

namespace taxolearn {

/// Holds a view: the inputs must outlive it.
template <class T>
class Tiled final : public Operator<T> {
 public:
  Tiled(std::shared_ptr<const Kernel> kernel, const InputView& X, const Execution& execution);

  /// On some rows of the inputs.
  Tiled(std::shared_ptr<const Kernel> kernel, InputRows rows, const Execution& execution);

  Index rows() const override { return rows_->count(); }
  void apply(DenseView<const T> S, DenseView<T> out, const T* shift, const Execution& execution) override;
  void apply_cross(const InputView& Xnew, DenseView<const T> S, DenseView<T> out, const Execution& execution) override;
  void diag(double* out) const override { kernel_->diag(*rows_, out); }
  Index parameters() const override { return kernel_->parameters(); }
  void bilinear_grad(DenseView<const T> E, DenseView<const T> F, double* gradient, const Execution& execution) override;
  std::unique_ptr<Operator<T>> subset(const std::vector<Index>& rows, const Execution& execution) override;
  std::string algorithm() const override { return "tiled"; }

 private:
  std::shared_ptr<const Kernel> kernel_;
  std::unique_ptr<const InputRows> rows_;      ///< the entries may look at them
  std::unique_ptr<KernelEntries<T>> entries_;  ///< among these rows
  SymmetricProduct<T> product_;
};

}  // namespace taxolearn
