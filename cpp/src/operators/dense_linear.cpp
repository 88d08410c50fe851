#include "taxolearn/operators/dense_linear.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/base/product.hpp"
#include "taxolearn/base/vector.hpp"
#include "taxolearn/operators/subset.hpp"

namespace taxolearn {
namespace {

constexpr Index rows_per_block = 512;
constexpr Index columns_per_block = 128;
constexpr Index segments_wanted = 8;  // enough blocks to keep the threads busy when there are few columns

}  // namespace

template <class T>
void multiply(DenseView<const T> A, DenseView<const T> S, DenseView<T> out, T scale, const T* shift,
              const Execution& execution) {
  const Blocks blocks(A.rows, rows_per_block);
  parallel_for(blocks.number(), execution, [&](Index b) {
    const DenseView<const T> rows = row_block(A, blocks.first(b), blocks.length(b));
    const DenseView<T> result = row_block(out, blocks.first(b), blocks.length(b));
    if (shift == nullptr) {
      set_product(Product::AB, rows, S, result, scale);
      return;
    }
    for (Index i = 0; i < result.rows; ++i) std::copy(shift, shift + result.cols, result.row(i));
    add_product(Product::AB, rows, S, result, scale);
  });
}

template <class T>
void multiply_add(DenseView<const T> A, DenseView<const T> S, DenseView<T> out, T scale, const Execution& execution) {
  const Blocks blocks(A.rows, rows_per_block);
  parallel_for(blocks.number(), execution, [&](Index b) {
    add_product(Product::AB, row_block(A, blocks.first(b), blocks.length(b)), S,
                row_block(out, blocks.first(b), blocks.length(b)), scale);
  });
}

template <class T>
DenseLinear<T>::DenseLinear(InputRows rows, double variance, const Execution& execution)
    : Linear<T>(std::move(rows), variance) {
  std::visit(
      [&](const auto& X) {
        using View = std::decay_t<decltype(X)>;
        if constexpr (std::is_same_v<View, DenseView<const T>>) {
          if (this->rows_.selected.empty()) {
            own_ = X;
            return;
          }
        }
        if constexpr (std::is_same_v<View, DenseView<const float>> || std::is_same_v<View, DenseView<const double>>) {
          copy_.resize(static_cast<std::size_t>(this->rows() * X.cols));
          const Blocks blocks(this->rows(), rows_per_block);
          parallel_for(blocks.number(), execution, [&](Index b) {
            for (Index i = blocks.first(b); i < blocks.first(b) + blocks.length(b); ++i) {
              convert_block(X.row(this->rows_.source(i)), copy_.data() + i * X.cols, X.cols);
            }
          });
          own_ = DenseView<const T>(copy_.data(), this->rows(), X.cols);
        }
      },
      this->rows_.X);
}

template <class T>
void DenseLinear<T>::project_scaled(DenseView<const T> S, T scale, DenseView<T> W, const Execution& execution) {
  // Blocks of columns are independent; with few of them the rows are cut into segments whose sums are added
  // in order.
  const Blocks columns(S.cols, columns_per_block);
  const Index segments = std::clamp<Index>(segments_wanted / std::max<Index>(columns.number(), 1), 1,
                                           std::max<Index>(S.rows / rows_per_block, 1));
  const Blocks rows(S.rows, (S.rows + segments - 1) / segments);
  partial_.resize(static_cast<std::size_t>(rows.number() * W.rows * W.cols));
  const auto partial = [&](Index segment) {
    return DenseView<T>(partial_.data() + segment * W.rows * W.cols, W.rows, W.cols);
  };
  parallel_for(columns.number() * rows.number(), execution, [&](Index task) {
    const Index segment = task % rows.number();
    const Index first = columns.first(task / rows.number());
    const Index width = columns.length(task / rows.number());
    set_product(Product::AtB, row_block(own_, rows.first(segment), rows.length(segment)),
                block(S, rows.first(segment), rows.length(segment), first, width),
                block(partial(segment), 0, W.rows, first, width));
  });
  clear(W);
  for (Index segment = 0; segment < rows.number(); ++segment) {
    for (Index d = 0; d < W.rows; ++d) {
      const T* const from = partial(segment).row(d);
      T* const to = W.row(d);
#pragma omp simd
      for (Index c = 0; c < W.cols; ++c) to[c] += scale * from[c];
    }
  }
}

template <class T>
void DenseLinear<T>::project(DenseView<const T> S, DenseView<T> W, const Execution& execution) {
  require_shape("S", S, this->rows(), S.cols);
  require_shape("W", W, this->features(), S.cols);
  project_scaled(S, static_cast<T>(std::sqrt(this->variance_)), W, execution);
}

template <class T>
void DenseLinear<T>::expand(DenseView<const T> W, DenseView<T> out, const T* shift, const Execution& execution) {
  require_shape("W", W, this->features(), W.cols);
  require_shape("out", out, this->rows(), W.cols);
  multiply(own_, W, out, static_cast<T>(std::sqrt(this->variance_)), shift, execution);
}

template <class T>
void DenseLinear<T>::add_expand(DenseView<const T> W, DenseView<T> out, const Execution& execution) {
  require_shape("W", W, this->features(), W.cols);
  require_shape("out", out, this->rows(), W.cols);
  multiply_add(own_, W, out, static_cast<T>(std::sqrt(this->variance_)), execution);
}

template <class T>
DenseView<const T> DenseLinear<T>::projected(DenseView<const T> S, const Execution& execution) {
  weights_.resize(static_cast<std::size_t>(this->features() * S.cols));
  const DenseView<T> weights(weights_.data(), this->features(), S.cols);
  project_scaled(S, T(1), weights, execution);
  return weights;
}

template <class T>
void DenseLinear<T>::apply(DenseView<const T> S, DenseView<T> out, const T* shift, const Execution& execution) {
  require_shape("S", S, this->rows(), S.cols);
  require_shape("out", out, this->rows(), S.cols);
  multiply<T>(own_, projected(S, execution), out, static_cast<T>(this->variance_), shift, execution);
}

template <class T>
void DenseLinear<T>::add_apply(DenseView<const T> S, DenseView<T> out, const Execution& execution) {
  require_shape("S", S, this->rows(), S.cols);
  require_shape("out", out, this->rows(), S.cols);
  multiply_add<T>(own_, projected(S, execution), out, static_cast<T>(this->variance_), execution);
}

template <class T>
std::unique_ptr<Operator<T>> DenseLinear<T>::subset(const std::vector<Index>& rows, const Execution& execution) {
  return std::make_unique<DenseLinear>(subset_of(this->rows_, rows), this->variance_, execution);
}

#define TAXOLEARN_INSTANTIATE(T)                                                                               \
  template void multiply(DenseView<const T>, DenseView<const T>, DenseView<T>, T, const T*, const Execution&); \
  template void multiply_add(DenseView<const T>, DenseView<const T>, DenseView<T>, T, const Execution&);       \
  template class DenseLinear<T>;
TAXOLEARN_INSTANTIATE(float)
TAXOLEARN_INSTANTIATE(double)
#undef TAXOLEARN_INSTANTIATE

}  // namespace taxolearn
