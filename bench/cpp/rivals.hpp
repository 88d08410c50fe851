// The same product X (X^T S) as one has it without this library. Both rivals keep X and X^T by rows, as the
// library does, and are as parallel.
#pragma once

#include <Eigen/SparseCore>

#include "csr.hpp"

namespace taxolearn::bench {

/// S and the result column by column (Fortran order): the classic layout. Each column takes two sparse
/// matrix-vector products, each entry of the result is a dot product; threads share the columns.
template <class T>
class ColumnMajorProduct {
 public:
  explicit ColumnMajorProduct(const Csr<double>& X) : by_row_(convert<T>(X)), by_feature_(transposed(by_row_)) {}

  /// S and out: rows x m, column-major.
  void apply(const T* S, T* out, Index m, int threads);

 private:
  Csr<T> by_row_;
  Csr<T> by_feature_;
  std::vector<std::vector<T>> scratch_;  ///< X^T s, one for each thread
};

/// Eigen's row-major sparse matrix times row-major dense matrix, over blocks of rows for the threads.
template <class T>
class EigenProduct {
 public:
  explicit EigenProduct(const Csr<double>& X);

  /// S and out: rows x m, row-major.
  void apply(const T* S, T* out, Index m, int threads);

 private:
  using Sparse = Eigen::SparseMatrix<T, Eigen::RowMajor, std::int32_t>;
  using Dense = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  Sparse by_row_;
  Sparse by_feature_;
  Dense features_;  ///< X^T S
};

}  // namespace taxolearn::bench
