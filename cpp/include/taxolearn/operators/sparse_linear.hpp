// variance * X X^T for sparse X by two sparse products. linear.hpp says when it is chosen.
#pragma once

#include "taxolearn/operators/linear.hpp"
#include "taxolearn/operators/sparse_product.hpp"

namespace taxolearn {

template <class T>
class SparseLinear final : public Linear<T> {
 public:
  SparseLinear(InputRows rows, double variance, FeatureOrder order, const Execution& execution);

  void apply(DenseView<const T> S, DenseView<T> out, const T* shift, const Execution& execution) override;
  void project(DenseView<const T> S, DenseView<T> W, const Execution& execution) override;
  void expand(DenseView<const T> W, DenseView<T> out, const T* shift, const Execution& execution) override;
  void add_apply(DenseView<const T> S, DenseView<T> out, const Execution& execution) override;
  void add_expand(DenseView<const T> W, DenseView<T> out, const Execution& execution) override;
  std::unique_ptr<Operator<T>> subset(const std::vector<Index>& rows, const Execution& execution) override;
  std::string algorithm() const override { return "sparse"; }

 private:
  template <class V, class I>
  void arrange(const SparseView<V, I>& X, const Execution& execution);
  void multiply_twice(DenseView<const T> S, DenseView<T> out, const T* shift, bool add, const Execution& execution);

  FeatureOrder order_;
  SparseMatrix<T> by_row_;      ///< the rows, columns arranged
  SparseMatrix<T> by_feature_;  ///< its transpose
  Buffer<T> diagonal_;          ///< per row, the sum of squares over features that no other row has; may be empty
  Buffer<T> row_panel_;         ///< n x panel width
  Buffer<T> feature_panel_;     ///< kept features x panel width
};

}  // namespace taxolearn
