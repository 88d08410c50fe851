// Eigen's view of blocks of row-major matrices, for the sources of operators.
#pragma once

#include <Eigen/Dense>

#include "taxolearn/base/matrix.hpp"

namespace taxolearn {

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using ConstMap = Eigen::Map<const RowMajor<T>, Eigen::Unaligned, Eigen::OuterStride<>>;
template <class T>
using Map = Eigen::Map<RowMajor<T>, Eigen::Unaligned, Eigen::OuterStride<>>;

template <class T>
ConstMap<T> block(const DenseView<const T>& A, Index row, Index rows, Index column, Index columns) {
  return ConstMap<T>(A.row(row) + column, rows, columns, Eigen::OuterStride<>(A.stride));
}

template <class T>
Map<T> block(const DenseView<T>& A, Index row, Index rows, Index column, Index columns) {
  return Map<T>(A.row(row) + column, rows, columns, Eigen::OuterStride<>(A.stride));
}

}  // namespace taxolearn
