#include "taxolearn/operators/input.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <type_traits>

namespace taxolearn {
namespace {

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Map = Eigen::Map<T, Eigen::Unaligned, Eigen::OuterStride<>>;

template <class T>
auto as_eigen(const DenseView<const T>& view) {
  return Map<const RowMajor<T>>(view.data, view.rows, view.cols, Eigen::OuterStride<>(view.stride));
}

/// Rows first .. first + count of a dense input in double precision, without a copy where it is double
/// already.
template <class T>
auto rows_as_double(const DenseView<const T>& X, Index first, Index count) {
  const DenseView<const T> block(X.row(first), count, X.cols, X.stride);
  if constexpr (std::is_same_v<T, double>) {
    return as_eigen(block);
  } else {
    return RowMajor<double>(as_eigen(block).template cast<double>());
  }
}

/// Cuts count columns into pieces whose width the compiler knows: body(width as a constant, first column).
template <class Body>
void for_columns(Index count, const Body& body) {
  Index column = 0;
  const auto take = [&](auto width) {
    for (; column + width() <= count; column += width()) body(width, column);
  };
  take(std::integral_constant<int, 32>{});
  take(std::integral_constant<int, 16>{});
  take(std::integral_constant<int, 8>{});
  take(std::integral_constant<int, 4>{});
  take(std::integral_constant<int, 2>{});
  take(std::integral_constant<int, 1>{});
}

template <int Width>
using Piece = Eigen::Map<Eigen::Array<double, Width, 1>>;
template <int Width>
using ConstPiece = Eigen::Map<const Eigen::Array<double, Width, 1>>;

template <class V, class I>
void expand(const SparseView<V, I>& X, Index first, const DenseView<const double>& W, const DenseView<double>& out) {
  for (Index i = 0; i < out.rows; ++i) {
    const I begin = X.offsets[first + i];
    const I end = X.offsets[first + i + 1];
    for_columns(out.cols, [&](auto width, Index column) {
      Eigen::Array<double, width(), 1> sum = Eigen::Array<double, width(), 1>::Zero();
      for (I k = begin; k < end; ++k) {
        sum += static_cast<double>(X.values[k]) * ConstPiece<width()>(W.row(static_cast<Index>(X.columns[k])) + column);
      }
      Piece<width()>(out.row(i) + column) = sum;
    });
  }
}

template <class T>
void expand(const DenseView<const T>& X, Index first, const DenseView<const double>& W, const DenseView<double>& out) {
  Map<RowMajor<double>>(out.data, out.rows, out.cols, Eigen::OuterStride<>(out.stride)).noalias() =
      rows_as_double(X, first, out.rows) * as_eigen(W);
}

template <class V, class I>
void project(const SparseView<V, I>& X, Index first, const DenseView<const double>& S, Index column, Index count,
             const DenseView<double>& W) {
  for (Index i = 0; i < S.rows; ++i) {
    const I begin = X.offsets[first + i];
    const I end = X.offsets[first + i + 1];
    for_columns(count, [&](auto width, Index at) {
      const Eigen::Array<double, width(), 1> row = ConstPiece<width()>(S.row(i) + column + at);
      for (I k = begin; k < end; ++k) {
        Piece<width()>(W.row(static_cast<Index>(X.columns[k])) + column + at) += static_cast<double>(X.values[k]) * row;
      }
    });
  }
}

template <class T>
void project(const DenseView<const T>& X, Index first, const DenseView<const double>& S, Index column, Index count,
             const DenseView<double>& W) {
  const DenseView<const double> part(S.data + column, S.rows, count, S.stride);
  Map<RowMajor<double>>(W.data + column, W.rows, count, Eigen::OuterStride<>(W.stride)).noalias() +=
      rows_as_double(X, first, S.rows).transpose() * as_eigen(part);
}

template <class V, class I>
void norms(const SparseView<V, I>& X, double* out) {
  for (Index i = 0; i < X.rows; ++i) {
    // Entries of one column are adjacent because indices are sorted; duplicates add up before the square.
    double sum = 0.0;
    for (I k = X.offsets[i]; k < X.offsets[i + 1];) {
      double value = static_cast<double>(X.values[k]);
      const I column = X.columns[k];
      for (++k; k < X.offsets[i + 1] && X.columns[k] == column; ++k) value += static_cast<double>(X.values[k]);
      sum += value * value;
    }
    out[i] = sum;
  }
}

template <class T>
void norms(const DenseView<const T>& X, double* out) {
  for (Index i = 0; i < X.rows; ++i) {
    out[i] =
        Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>(X.row(i), X.cols).template cast<double>().square().sum();
  }
}

template <class V, class I>
Index entries(const SparseView<V, I>& X) {
  return X.nonzeros();
}

template <class T>
Index entries(const DenseView<const T>& X) {
  return X.rows * X.cols;
}

}  // namespace

Index input_rows(const InputView& X) {
  return std::visit([](const auto& x) { return x.rows; }, X);
}

Index input_features(const InputView& X) {
  return std::visit([](const auto& x) { return x.cols; }, X);
}

Index input_entries(const InputView& X) {
  return std::visit([](const auto& x) { return entries(x); }, X);
}

void expand_rows(const InputView& X, Index first, DenseView<const double> W, DenseView<double> out) {
  std::visit([&](const auto& x) { expand(x, first, W, out); }, X);
}

void project_columns(const InputView& X, Index first, DenseView<const double> S, Index column, Index count,
                     DenseView<double> W) {
  std::visit([&](const auto& x) { project(x, first, S, column, count, W); }, X);
}

void squared_norms(const InputView& X, double* out) {
  std::visit([&](const auto& x) { norms(x, out); }, X);
}

}  // namespace taxolearn
