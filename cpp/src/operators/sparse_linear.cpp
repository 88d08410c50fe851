#include "taxolearn/operators/sparse_linear.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "taxolearn/base/check.hpp"
#include "taxolearn/operators/subset.hpp"

namespace taxolearn {
namespace {

constexpr Index rows_per_block = 512;

template <class View>
struct is_sparse_view : std::false_type {};
template <class V, class I>
struct is_sparse_view<SparseView<V, I>> : std::true_type {};

/// new_index[j] for every column with two or more entries, most frequent first; -1 for the others.
std::vector<std::int32_t> compact_numbers(const std::vector<std::int32_t>& counts, Index& kept) {
  const std::int32_t most = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  std::vector<Index> begin(static_cast<std::size_t>(most) + 2, 0);  // counting sort, descending
  for (const std::int32_t count : counts) {
    if (count >= 2) ++begin[static_cast<std::size_t>(most - count) + 1];
  }
  for (std::size_t k = 1; k < begin.size(); ++k) begin[k] += begin[k - 1];
  kept = begin.back();
  std::vector<std::int32_t> numbers(counts.size(), -1);
  for (std::size_t j = 0; j < counts.size(); ++j) {
    if (counts[j] >= 2) numbers[j] = static_cast<std::int32_t>(begin[static_cast<std::size_t>(most - counts[j])]++);
  }
  return numbers;
}

/// out = scale A S + 1 shift^T, or out += scale A S, in panels of columns.
template <class T>
void multiply(const SparseMatrix<T>& A, DenseView<const T> S, double scale, const T* shift, bool add, DenseView<T> out,
              Buffer<T>& panel, const Execution& execution) {
  const Index width = panel_width_for<T>(S.cols);
  panel.resize(static_cast<std::size_t>(S.rows * width));
  for (Index first = 0; first < S.cols; first += width) {
    ProductTarget<T> target;
    target.columns = std::min(width, S.cols - first);
    target.out = DenseView<T>(out.data + first, out.rows, target.columns, out.stride);
    target.scale = static_cast<T>(scale);
    target.shift = shift == nullptr ? nullptr : shift + first;
    target.add = add;
    pack_panel(S, first, target.columns, width, panel.data(), execution);
    A.multiply(panel.data(), width, target, execution);
  }
}

}  // namespace

template <class T>
SparseLinear<T>::SparseLinear(InputRows rows, double variance, FeatureOrder order, const Execution& execution)
    : Linear<T>(std::move(rows), variance), order_(order) {
  const InputView& inputs = this->rows_.X;
  constexpr Index most = std::numeric_limits<std::int32_t>::max();
  require(input_rows(inputs) <= most && input_features(inputs) <= most, "X has shape (", input_rows(inputs), ", ",
          input_features(inputs), "), expected at most ", most, " rows and columns");
  std::visit(
      [&](const auto& X) {
        if constexpr (is_sparse_view<std::decay_t<decltype(X)>>::value) {
          arrange(X, execution);
        } else {
          assert(false && "sparse inputs expected");
        }
      },
      inputs);
}

template <class T>
template <class V, class I>
void SparseLinear<T>::arrange(const SparseView<V, I>& X, const Execution& execution) {
  const Index n = this->rows();
  const bool compact = order_ == FeatureOrder::compact;
  const Blocks blocks(n, rows_per_block);
  /// body(row, its entries' range in X) over these rows, in parallel.
  const auto for_rows = [&](const auto& body) {
    parallel_for(blocks.number(), execution, [&](Index block) {
      for (Index i = blocks.first(block); i < blocks.first(block) + blocks.length(block); ++i) {
        body(i, X.offsets[this->rows_.source(i)], X.offsets[this->rows_.source(i) + 1]);
      }
    });
  };

  // Number of each column, -1 for those left out, which go to the diagonal.
  Index kept = X.cols;
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(X.cols));
  if (compact) {
    std::vector<std::int32_t> counts(static_cast<std::size_t>(X.cols), 0);
    for (Index i = 0; i < n; ++i) {
      const Index row = this->rows_.source(i);
      for (I k = X.offsets[row]; k < X.offsets[row + 1]; ++k) ++counts[static_cast<std::size_t>(X.columns[k])];
    }
    numbers = compact_numbers(counts, kept);
    diagonal_.assign(static_cast<std::size_t>(n), T(0));
  } else {
    std::iota(numbers.begin(), numbers.end(), 0);
  }

  std::vector<Index> offsets(static_cast<std::size_t>(n) + 1, 0);
  for_rows([&](Index i, I begin, I end) {
    Index count = 0;
    for (I k = begin; k < end; ++k) count += numbers[static_cast<std::size_t>(X.columns[k])] >= 0 ? 1 : 0;
    offsets[static_cast<std::size_t>(i) + 1] = count;
  });
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  std::vector<std::int32_t> indices(static_cast<std::size_t>(offsets.back()));
  std::vector<T> values(indices.size());
  for_rows([&](Index i, I begin, I end) {
    auto at = static_cast<std::size_t>(offsets[static_cast<std::size_t>(i)]);
    double alone = 0.0;
    for (I k = begin; k < end; ++k) {
      const std::int32_t number = numbers[static_cast<std::size_t>(X.columns[k])];
      if (number < 0) {
        alone += static_cast<double>(X.values[k]) * static_cast<double>(X.values[k]);
      } else {
        indices[at] = number;
        values[at++] = static_cast<T>(X.values[k]);
      }
    }
    if (compact) diagonal_[static_cast<std::size_t>(i)] = static_cast<T>(alone);
  });
  by_row_ = SparseMatrix<T>(std::move(offsets), std::move(indices), std::move(values));
  by_feature_ = by_row_.transposed(kept, execution);
}

template <class T>
void SparseLinear<T>::apply(DenseView<const T> S, DenseView<T> out, const T* shift, const Execution& execution) {
  multiply_twice(S, out, shift, false, execution);
}

template <class T>
void SparseLinear<T>::add_apply(DenseView<const T> S, DenseView<T> out, const Execution& execution) {
  multiply_twice(S, out, nullptr, true, execution);
}

template <class T>
void SparseLinear<T>::multiply_twice(DenseView<const T> S, DenseView<T> out, const T* shift, bool add,
                                     const Execution& execution) {
  require_shape("S", S, this->rows(), S.cols);
  require_shape("out", out, S.rows, S.cols);
  const Index width = panel_width_for<T>(S.cols);
  row_panel_.resize(static_cast<std::size_t>(S.rows * width));
  feature_panel_.resize(static_cast<std::size_t>(by_feature_.rows() * width));
  for (Index first = 0; first < S.cols; first += width) {
    const Index columns = std::min(width, S.cols - first);
    pack_panel(S, first, columns, width, row_panel_.data(), execution);
    ProductTarget<T> features;
    features.out = DenseView<T>(feature_panel_.data(), by_feature_.rows(), width);
    features.columns = width;
    by_feature_.multiply(row_panel_.data(), width, features, execution);
    ProductTarget<T> result;
    result.out = DenseView<T>(out.data + first, out.rows, columns, out.stride);
    result.columns = columns;
    result.scale = static_cast<T>(this->variance_);
    result.shift = shift == nullptr ? nullptr : shift + first;
    result.add = add;
    if (!diagonal_.empty()) {
      result.diagonal = diagonal_.data();
      result.self = row_panel_.data();
    }
    by_row_.multiply(feature_panel_.data(), width, result, execution);
  }
}

template <class T>
void SparseLinear<T>::project(DenseView<const T> S, DenseView<T> W, const Execution& execution) {
  assert(order_ == FeatureOrder::given);
  require_shape("S", S, this->rows(), S.cols);
  require_shape("W", W, this->features(), S.cols);
  multiply(by_feature_, S, std::sqrt(this->variance_), static_cast<const T*>(nullptr), false, W, row_panel_, execution);
}

template <class T>
void SparseLinear<T>::expand(DenseView<const T> W, DenseView<T> out, const T* shift, const Execution& execution) {
  assert(order_ == FeatureOrder::given);
  require_shape("W", W, this->features(), W.cols);
  require_shape("out", out, this->rows(), W.cols);
  multiply(by_row_, W, std::sqrt(this->variance_), shift, false, out, feature_panel_, execution);
}

template <class T>
void SparseLinear<T>::add_expand(DenseView<const T> W, DenseView<T> out, const Execution& execution) {
  assert(order_ == FeatureOrder::given);
  require_shape("W", W, this->features(), W.cols);
  require_shape("out", out, this->rows(), W.cols);
  multiply(by_row_, W, std::sqrt(this->variance_), static_cast<const T*>(nullptr), true, out, feature_panel_,
           execution);
}

template <class T>
std::unique_ptr<Operator<T>> SparseLinear<T>::subset(const std::vector<Index>& rows, const Execution& execution) {
  return std::make_unique<SparseLinear>(subset_of(this->rows_, rows), this->variance_, order_, execution);
}

template class SparseLinear<float>;
template class SparseLinear<double>;

}  // namespace taxolearn
