// Blocks of row-major matrices.
#pragma once

#include <algorithm>

#include "taxolearn/base/matrix.hpp"

namespace taxolearn {

template <class T>
DenseView<T> block(const DenseView<T>& A, Index row, Index rows, Index column, Index columns) {
  return DenseView<T>(A.row(row) + column, rows, columns, A.stride);
}

template <class T>
DenseView<T> row_block(const DenseView<T>& A, Index row, Index rows) {
  return block(A, row, rows, 0, A.cols);
}

template <class T>
void clear(const DenseView<T>& out) {
  for (Index i = 0; i < out.rows; ++i) std::fill_n(out.row(i), out.cols, T(0));
}

/// to = from, in another precision if the types differ.
template <class From, class To>
void copy(const DenseView<From>& from, const DenseView<To>& to) {
  for (Index i = 0; i < from.rows; ++i) {
    const From* const a = from.row(i);
    To* const b = to.row(i);
#pragma omp simd
    for (Index j = 0; j < from.cols; ++j) b[j] = static_cast<To>(a[j]);
  }
}

/// to = from^T, by blocks of rows small enough for the lines in use to stay in the first cache.
template <class From, class T>
void copy_transposed(const DenseView<From>& from, const DenseView<T>& to) {
  constexpr Index width = 128;
  for (Index first = 0; first < from.rows; first += width) {
    const Index count = std::min(width, from.rows - first);
    for (Index i = 0; i < from.cols; ++i) {
      const From* const column = from.row(first) + i;
      T* const row = to.row(i) + first;
      for (Index k = 0; k < count; ++k) row[k] = column[k * from.stride];
    }
  }
}

/// A in double precision: itself, or a copy in the memory given.
inline DenseView<const double> as_double(const DenseView<const double>& A, Buffer<double>&) { return A; }
inline DenseView<const double> as_double(const DenseView<const float>& A, Buffer<double>& memory) {
  memory.resize(static_cast<std::size_t>(A.rows * A.cols));
  const DenseView<double> out(memory.data(), A.rows, A.cols);
  copy(A, out);
  return out;
}

}  // namespace taxolearn
