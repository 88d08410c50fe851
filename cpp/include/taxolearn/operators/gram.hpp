// Kernel matrices computed once and stored, for any kernels on the same inputs. They share one store
// (packed_symmetric.hpp), and so do the operators of subsets of the rows: these are lists of rows, without entries of
// their own. A product first brings its rows to the front of the store, which costs nothing where they are there
// already: so users of several subsets should not take turns with every product.
#pragma once

#include <memory>
#include <vector>

#include "taxolearn/kernels/kernel.hpp"
#include "taxolearn/operators/operator.hpp"
#include "taxolearn/operators/packed_symmetric.hpp"

namespace taxolearn {

/// Holds a view: the inputs must outlive it. Operators of one store work one at a time.
template <class T>
class Gram final : public Operator<T> {
 public:
  /// Matrix l of the store is that of the kernel on all rows of the inputs.
  Gram(std::shared_ptr<const Kernel> kernel, InputRows rows, std::shared_ptr<PackedSymmetric<T>> store, Index l);

  Index rows() const override { return rows_.count(); }
  void apply(DenseView<const T> S, DenseView<T> out, const T* shift, const Execution& execution) override;
  void apply_cross(const InputView& Xnew, DenseView<const T> S, DenseView<T> out, const Execution& execution) override;
  void diag(double* out) const override { kernel_->diag(rows_, out); }
  Index parameters() const override { return kernel_->parameters(); }
  void bilinear_grad(DenseView<const T> E, DenseView<const T> F, double* gradient, const Execution& execution) override;
  std::unique_ptr<Operator<T>> subset(const std::vector<Index>& rows, const Execution& execution) override;
  std::string algorithm() const override { return "gram"; }

 private:
  std::shared_ptr<const Kernel> kernel_;
  InputRows rows_;
  std::shared_ptr<PackedSymmetric<T>> store_;
  Index l_;
};

/// One operator per kernel, all on one store. The entries are computed in double precision and rounded to T.
template <class T>
std::vector<std::unique_ptr<Operator<T>>> make_gram(const std::vector<std::shared_ptr<const Kernel>>& kernels,
                                                    const InputView& X, const Execution& execution);

/// Memory of the store for `count` kernels on n rows, with elements of so many bytes.
double gram_bytes(Index n, Index count, std::size_t element);

}  // namespace taxolearn
