#include "taxolearn/base/triangular.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Core>

#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/base/product.hpp"
#include "taxolearn/base/vector.hpp"

namespace taxolearn {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Map = Eigen::Map<RowMajor, Eigen::Unaligned, Eigen::OuterStride<>>;
using ConstMap = Eigen::Map<const RowMajor, Eigen::Unaligned, Eigen::OuterStride<>>;

Map as_eigen(const DenseView<double>& A) { return Map(A.data, A.rows, A.cols, Eigen::OuterStride<>(A.stride)); }
ConstMap as_eigen(const DenseView<const double>& A) {
  return ConstMap(A.data, A.rows, A.cols, Eigen::OuterStride<>(A.stride));
}

// A single right side is better served by products of a matrix and a vector.

constexpr Index panel = 32;

bool is_vector(const DenseView<double>& B) { return B.cols == 1 && B.stride == 1; }

void solve_vector(const DenseView<const double>& L, const DenseView<double>& b) {
  const Blocks panels(b.rows, panel);
  for (Index k = 0; k < panels.number(); ++k) {
    const Index first = panels.first(k);
    const DenseView<double> part = row_block(b, first, panels.length(k));
    add_product(Product::AB, block(L, first, part.rows, 0, first), row_block(b, 0, first), part, -1.0);
    for (Index i = 0; i < part.rows; ++i) {
      const double* const row = L.row(first + i) + first;
      part.data[i] = (part.data[i] - dot_block(row, part.data, i)) / row[i];
    }
  }
}

void solve_vector_transposed(const DenseView<const double>& L, const DenseView<double>& b) {
  const Blocks panels(b.rows, panel);
  for (Index k = panels.number(); k-- > 0;) {
    const Index first = panels.first(k);
    const DenseView<double> part = row_block(b, first, panels.length(k));
    for (Index i = part.rows; i-- > 0;) {
      const double* const row = L.row(first + i) + first;
      part.data[i] /= row[i];
      axpy_block(-part.data[i], row, part.data, i);
    }
    add_product(Product::AtB, block(L, first, part.rows, 0, first), part, row_block(b, 0, first), -1.0);
  }
}

}  // namespace

void solve_lower(DenseView<const double> L, DenseView<double> B) {
  if (is_vector(B)) return solve_vector(L, B);
  Map result = as_eigen(B);
  as_eigen(L).triangularView<Eigen::Lower>().solveInPlace(result);
}

void solve_lower_transposed(DenseView<const double> L, DenseView<double> B) {
  if (is_vector(B)) return solve_vector_transposed(L, B);
  Map result = as_eigen(B);
  as_eigen(L).transpose().triangularView<Eigen::Upper>().solveInPlace(result);
}

void solve_lower_right(DenseView<const double> L, DenseView<double> B) {
  Map result = as_eigen(B);
  as_eigen(L).triangularView<Eigen::Lower>().solveInPlace<Eigen::OnTheRight>(result);
}

void solve_lower_transposed_right(DenseView<const double> L, DenseView<double> B) {
  Map result = as_eigen(B);
  as_eigen(L).transpose().triangularView<Eigen::Upper>().solveInPlace<Eigen::OnTheRight>(result);
}

bool factor_cholesky(DenseView<double> A) {
  Map matrix = as_eigen(A);
  const Eigen::LLT<RowMajor> factor(matrix);
  if (factor.info() != Eigen::Success || !factor.matrixLLT().diagonal().allFinite()) return false;
  matrix = factor.matrixL();
  return true;
}

}  // namespace taxolearn
