// Any operator with its matrix computed once and stored: products then cost 2 n^2 m flops, whatever the
// kernel.
#pragma once

#include <memory>

#include "taxolearn/operators/operator.hpp"

namespace taxolearn {

template <class T>
class Stored final : public Operator<T> {
 public:
  Stored(std::unique_ptr<Operator<T>> source, const Execution& execution);

  /// With the source's matrix, already computed.
  Stored(std::unique_ptr<Operator<T>> source, Matrix<T> matrix);

  Index rows() const override { return source_->rows(); }
  void apply(DenseView<const T> S, DenseView<T> out, const T* shift, const Execution& execution) override;
  void apply_cross(const InputView& Xnew, DenseView<const T> S, DenseView<T> out, const Execution& execution) override;
  void diag(double* out) const override { source_->diag(out); }
  Index parameters() const override { return source_->parameters(); }
  void bilinear_grad(DenseView<const T> E, DenseView<const T> F, double* gradient, const Execution& execution) override;
  std::unique_ptr<Operator<T>> subset(const std::vector<Index>& rows, const Execution& execution) override;
  std::string algorithm() const override { return "stored"; }

 private:
  std::unique_ptr<Operator<T>> source_;
  Matrix<T> matrix_;
};

}  // namespace taxolearn
