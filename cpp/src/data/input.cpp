#include "taxolearn/data/input.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <type_traits>
#include <vector>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/base/product.hpp"
#include "taxolearn/base/vector.hpp"
#include "taxolearn/data/parts.hpp"

namespace taxolearn {
namespace {

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

constexpr Index features_per_tile = 256;
constexpr Index features_per_part = 64;
constexpr Index rows_per_tile = 512;
constexpr Index parts_per_thread = 2;
constexpr Index small_parts_per_thread = 8;  // of which each thread holds one
constexpr Index panel_columns = 256;
constexpr Index many_columns = 128;

template <int Width>
using Piece = Eigen::Map<Eigen::Array<double, Width, 1>>;
template <int Width, class T = double>
using ConstPiece = Eigen::Map<const Eigen::Array<T, Width, 1>>;

/// sum_k values[k] W.row(columns[k]) over begin <= k < end. Four rows of W at a time are read from front to back:
/// pieces of long rows would each cost a cache miss, and a miss of the page table.
template <class V, class I, class U>
void sum_rows(const SparseView<V, I>& X, I begin, I end, const DenseView<const U>& W, double* out) {
  const auto row = [&](I k) { return W.row(static_cast<Index>(X.columns[k])); };
  const auto value = [&](I k) { return static_cast<double>(X.values[k]); };
  std::fill(out, out + W.cols, 0.0);
  I k = begin;
  for (; k + 4 <= end; k += 4) {
    const double v0 = value(k), v1 = value(k + 1), v2 = value(k + 2), v3 = value(k + 3);
    const U *const w0 = row(k), *const w1 = row(k + 1), *const w2 = row(k + 2), *const w3 = row(k + 3);
#pragma omp simd
    for (Index c = 0; c < W.cols; ++c) out[c] += v0 * w0[c] + v1 * w1[c] + v2 * w2[c] + v3 * w3[c];
  }
  for (; k < end; ++k) axpy_block(value(k), row(k), out, W.cols);
}

template <class V, class I, class U>
void expand(const SparseView<V, I>& X, Index first, const DenseView<const U>& W, const DenseView<double>& out) {
  if (out.cols >= many_columns) {
    for (Index i = 0; i < out.rows; ++i) sum_rows(X, X.offsets[first + i], X.offsets[first + i + 1], W, out.row(i));
    return;
  }
  for (Index i = 0; i < out.rows; ++i) {
    const I begin = X.offsets[first + i];
    const I end = X.offsets[first + i + 1];
    for_columns(out.cols, [&](auto width, Index column) {
      Eigen::Array<double, width(), 1> sum = Eigen::Array<double, width(), 1>::Zero();
      for (I k = begin; k < end; ++k) {
        const ConstPiece<width(), U> weights(W.row(static_cast<Index>(X.columns[k])) + column);
        sum += static_cast<double>(X.values[k]) * weights.template cast<double>();
      }
      Piece<width()>(out.row(i) + column) = sum;
    });
  }
}

template <class T>
void expand(const DenseView<const T>& X, Index first, const DenseView<const double>& W, const DenseView<double>& out) {
  Buffer<double> memory;
  set_product(Product::AB, as_double(row_block(X, first, out.rows), memory), W, out);
}

/// Weights become double a few rows at a time.
template <class T>
void expand(const DenseView<const T>& X, Index first, const DenseView<const float>& W, const DenseView<double>& out) {
  Buffer<double> memory, tile;
  const DenseView<const double> rows = as_double(row_block(X, first, out.rows), memory);
  for (Index i = 0; i < out.rows; ++i) std::fill(out.row(i), out.row(i) + out.cols, 0.0);
  const Blocks tiles(W.rows, features_per_tile);
  for (Index t = 0; t < tiles.number(); ++t) {
    const DenseView<const double> weights = as_double(row_block(W, tiles.first(t), tiles.length(t)), tile);
    add_product(Product::AB, block(rows, 0, rows.rows, tiles.first(t), tiles.length(t)), weights, out);
  }
}

/// Block after block, by way of memory of this thread.
template <class U>
void expand(const BlockedView& X, Index first, const DenseView<const U>& W, const DenseView<double>& out) {
  thread_local Buffer<double> memory;
  memory.resize(static_cast<std::size_t>(out.rows * out.cols));
  const DenseView<double> part(memory.data(), out.rows, out.cols);
  clear(out);
  for (const InputBlock& block : X.blocks) {
    expand_rows(block.X, first, row_block(W, block.first, input_features(block.X)), part);
    for (Index i = 0; i < out.rows; ++i) axpy_block(block.factor, part.row(i), out.row(i), out.cols);
  }
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
  Buffer<double> memory;
  add_product(Product::AtB, as_double(row_block(X, first, S.rows), memory), block(S, 0, S.rows, column, count),
              block(W, 0, W.rows, column, count));
}

void project(const BlockedView& X, Index first, const DenseView<const double>& S, Index column, Index count,
             const DenseView<double>& W) {
  thread_local Buffer<double> memory;
  memory.resize(static_cast<std::size_t>(S.rows * count));
  const DenseView<double> scaled(memory.data(), S.rows, count);
  for (const InputBlock& each : X.blocks) {
    for (Index i = 0; i < S.rows; ++i) {
      for (Index c = 0; c < count; ++c) scaled.row(i)[c] = each.factor * S.row(i)[column + c];
    }
    project_columns(each.X, first, scaled, 0, count, block(W, each.first, input_features(each.X), column, count));
  }
}

/// Rows begin .. end of X^T S. Of every row of X it takes the entries of these features, which are neighbours because
/// indices are sorted, and goes over the columns in panels.
template <class V, class I>
void project(const SparseView<V, I>& X, const DenseView<const double>& S, Index begin, const DenseView<double>& out) {
  std::vector<std::pair<I, I>> ranges;
  ranges.reserve(static_cast<std::size_t>(X.rows));
  for (Index i = 0; i < X.rows; ++i) {
    const I* const last = X.columns + X.offsets[i + 1];
    const I* const from = std::lower_bound(X.columns + X.offsets[i], last, static_cast<I>(begin));
    const I* const to = std::lower_bound(from, last, static_cast<I>(begin + out.rows));
    ranges.emplace_back(static_cast<I>(from - X.columns), static_cast<I>(to - X.columns));
  }
  clear(out);
  const Blocks panels(out.cols, panel_columns);
  for (Index panel = 0; panel < panels.number(); ++panel) {
    for (Index i = 0; i < X.rows; ++i) {
      const std::pair<I, I> range = ranges[static_cast<std::size_t>(i)];
      for_columns(panels.length(panel), [&](auto width, Index at) {
        const Index column = panels.first(panel) + at;
        const Eigen::Array<double, width(), 1> row = ConstPiece<width()>(S.row(i) + column);
        for (I k = range.first; k < range.second; ++k) {
          Piece<width()>(out.row(static_cast<Index>(X.columns[k]) - begin) + column) +=
              static_cast<double>(X.values[k]) * row;
        }
      });
    }
  }
}

/// The same, some rows of X after the other.
template <class T>
void project(const DenseView<const T>& X, const DenseView<const double>& S, Index begin, const DenseView<double>& out) {
  Buffer<double> memory;
  clear(out);
  const Blocks rows(X.rows, rows_per_tile);
  for (Index b = 0; b < rows.number(); ++b) {
    const DenseView<const T> tile = block(X, rows.first(b), rows.length(b), begin, out.rows);
    add_product(Product::AtB, as_double(tile, memory), row_block(S, rows.first(b), rows.length(b)), out);
  }
}

void project(const BlockedView&, const DenseView<const double>&, Index, const DenseView<double>&) {
  assert(false && "one matrix expected");
}

/// W = X^T S by parts of the features, at the same time.
void project_parts(const InputView& X, const DenseView<const double>& S, const Blocks& parts,
                   const DenseView<double>& W, const Execution& execution) {
  parallel_for(parts.number(), execution, [&](Index part) {
    const DenseView<double> rows = row_block(W, parts.first(part), parts.length(part));
    std::visit([&](const auto& x) { project(x, S, parts.first(part), rows); }, X);
  });
}

/// The features in parts, so many for each thread.
Blocks feature_parts(const InputView& X, Index per_thread, const Execution& execution) {
  const Index parts = per_thread * std::max(execution.threads, 1);
  return Blocks(input_features(X), (input_features(X) + parts - 1) / parts);
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
  for (Index i = 0; i < X.rows; ++i) out[i] = dot_block(X.row(i), X.row(i), X.cols);
}

void norms(const BlockedView& X, double* out) {
  std::vector<double> part(static_cast<std::size_t>(X.rows));
  std::fill(out, out + X.rows, 0.0);
  for (const InputBlock& block : X.blocks) {
    squared_norms(block.X, part.data());
    axpy_block(block.factor * block.factor, part.data(), out, X.rows);
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

Index entries(const BlockedView& X) {
  Index sum = 0;
  for (const InputBlock& block : X.blocks) sum += input_entries(block.X);
  return sum;
}

}  // namespace

InputView side_by_side(const std::vector<InputView>& matrices) {
  require(!matrices.empty(), "there is no block, expected at least one matrix");
  BlockedView out;
  out.rows = input_rows(matrices.front());
  for (const InputView& X : matrices) {
    require(input_blocks(X) == nullptr, "block ", out.blocks.size(), " has blocks itself, expected a matrix");
    require(input_rows(X) == out.rows, "block ", out.blocks.size(), " has ", input_rows(X), " rows, expected ",
            out.rows, " as in the first");
    out.blocks.push_back({X, 1.0, out.cols});
    out.cols += input_features(X);
  }
  return out;
}

InputView with_variances(const InputView& X, const std::vector<double>& variances) {
  require(input_blocks(X) != nullptr, "there are variances of blocks, but X is one matrix");
  BlockedView out = std::get<BlockedView>(X);
  require(variances.size() == out.blocks.size(), "there are ", variances.size(), " variances of blocks, expected ",
          out.blocks.size());
  for (std::size_t b = 0; b < variances.size(); ++b) {
    require(std::isfinite(variances[b]) && variances[b] > 0.0, "the variance of block ", b,
            " must be positive and finite, got ", variances[b]);
    out.blocks[b].factor = std::sqrt(variances[b]);
  }
  return out;
}

const std::vector<InputBlock>* input_blocks(const InputView& X) {
  const auto* const blocked = std::get_if<BlockedView>(&X);
  return blocked == nullptr ? nullptr : &blocked->blocks;
}

bool is_sparse(const InputView& X) { return X.index() < 4; }

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
void expand_rows(const InputView& X, Index first, DenseView<const float> W, DenseView<double> out) {
  std::visit([&](const auto& x) { expand(x, first, W, out); }, X);
}

void project_columns(const InputView& X, Index first, DenseView<const double> S, Index column, Index count,
                     DenseView<double> W) {
  std::visit([&](const auto& x) { project(x, first, S, column, count, W); }, X);
}

void project_sparse(const InputView& X, DenseView<const double> S, DenseView<double> W, const Execution& execution) {
  project_parts(X, S, feature_parts(X, parts_per_thread, execution), W, execution);
}

void project_dense(const InputView& X, DenseView<const double> S, DenseView<double> W, const Execution& execution) {
  project_parts(X, S, Blocks(input_features(X), features_per_part), W, execution);
}

void project_sparse(const InputView& X, DenseView<const double> S,
                    const std::function<void(Index, DenseView<double>)>& take, const Execution& execution) {
  project_parts(X, S, feature_parts(X, small_parts_per_thread, execution).size, take, execution);
}

void project_parts(const InputView& X, DenseView<const double> S, Index features_per_part,
                   const std::function<void(Index, DenseView<double>)>& take, const Execution& execution) {
  const Blocks parts(input_features(X), features_per_part);
  parallel_for(parts.number(), execution, [&](Index part) {
    auto rows = Matrix<double>::uninitialised(parts.length(part), S.cols);
    std::visit([&](const auto& x) { project(x, S, parts.first(part), rows.view()); }, X);
    take(parts.first(part), rows.view());
  });
}

void squared_norms(const InputView& X, double* out) {
  std::visit([&](const auto& x) { norms(x, out); }, X);
}

}  // namespace taxolearn
