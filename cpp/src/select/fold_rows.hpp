// Coefficients of all rows and of those of a fold, as matrices and as points.
#pragma once

#include <algorithm>
#include <vector>

#include "taxolearn/base/matrix.hpp"

namespace taxolearn {

inline Matrix<double> as_matrix(const Buffer<double>& point, Index rows, Index cols) {
  Matrix<double> out(rows, cols);
  std::copy(point.begin(), point.begin() + rows * cols, out.data());
  return out;
}

inline Buffer<double> as_buffer(const Matrix<double>& from, double factor) {
  Buffer<double> out(static_cast<std::size_t>(from.size()));
  std::transform(from.data(), from.data() + from.size(), out.begin(), [=](double value) { return factor * value; });
  return out;
}

/// Rows of a matrix.
inline Matrix<double> rows_of(const Matrix<double>& from, const std::vector<Index>& rows) {
  Matrix<double> out(static_cast<Index>(rows.size()), from.cols());
  for (Index k = 0; k < out.rows(); ++k) {
    const double* const row = from.row(rows[static_cast<std::size_t>(k)]);
    std::copy(row, row + from.cols(), out.row(k));
  }
  return out;
}

inline void put_rows(const Matrix<double>& from, const std::vector<Index>& rows, Matrix<double>& to) {
  for (Index k = 0; k < from.rows(); ++k)
    std::copy(from.row(k), from.row(k) + from.cols(), to.row(rows[static_cast<std::size_t>(k)]));
}

}  // namespace taxolearn
