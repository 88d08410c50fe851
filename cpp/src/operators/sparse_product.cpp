#include "taxolearn/operators/sparse_product.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "taxolearn/base/packets.hpp"

namespace taxolearn {
namespace {

constexpr Index rows_per_pack = 256;
constexpr Index rows_per_part = 1024;
constexpr Index ahead = 8;              // entries whose rows are prefetched before they are needed
constexpr Index work_per_block = 4096;  // nonzeros and rows: tens of microseconds

/// The widest panel whose two sums stay in registers.
template <class T>
constexpr Index widest_panel =
    std::clamp<Index>(6 * lanes<T> / panel_granularity * panel_granularity, panel_granularity, 96);

template <int Width, class T>
void prefetch_row(const T* row) {
  constexpr int line = 64 / static_cast<int>(sizeof(T));
  for (int c = 0; c < Width; c += line) prefetch(row + c);
}

/// Rows first .. last of the product, with the panel width known to the compiler.
template <class T, int Width>
void multiply_rows(const Index* offsets, const std::int32_t* indices, const T* values, Index first, Index last,
                   const T* panel, const ProductTarget<T>& target) {
  using Row = Eigen::Array<T, Width, 1>;
  using RowMap = Eigen::Map<const Row>;
  const Index last_entry = offsets[last] - 1;
  for (Index i = first; i < last; ++i) {
    Row even = Row::Zero();
    Row odd = Row::Zero();
    Index k = offsets[i];
    const Index end = offsets[i + 1];
    for (; k + 1 < end; k += 2) {
      prefetch_row<Width>(panel + indices[std::min(k + ahead, last_entry)] * Index{Width});
      prefetch_row<Width>(panel + indices[std::min(k + ahead + 1, last_entry)] * Index{Width});
      even += values[k] * RowMap(panel + indices[k] * Index{Width});
      odd += values[k + 1] * RowMap(panel + indices[k + 1] * Index{Width});
    }
    if (k < end) even += values[k] * RowMap(panel + indices[k] * Index{Width});
    even += odd;
    if (target.diagonal != nullptr) even += target.diagonal[i] * RowMap(target.self + i * Width);
    even *= target.scale;
    T* out = target.out.row(i);
    if (target.add) {
      for (Index c = 0; c < target.columns; ++c) out[c] += even[c];
    } else if (target.shift != nullptr) {
      for (Index c = 0; c < target.columns; ++c) out[c] = even[c] + target.shift[c];
    } else if (target.columns == Width) {
      Eigen::Map<Row>{out} = even;
    } else {
      std::memcpy(out, even.data(), static_cast<std::size_t>(target.columns) * sizeof(T));
    }
  }
}

template <class T>
using RowKernel = void (*)(const Index*, const std::int32_t*, const T*, Index, Index, const T*,
                           const ProductTarget<T>&);

template <class T>
RowKernel<T> kernel_for(Index width) {
  RowKernel<T> kernel = nullptr;
  unrolled<widest_panel<T> / panel_granularity>([&](auto k) {
    constexpr int own = static_cast<int>(panel_granularity) * (k() + 1);
    if (width == own) kernel = multiply_rows<T, own>;
  });
  return kernel;
}

}  // namespace

template <class T>
Index panel_width() {
  return widest_panel<T>;
}

template <class T>
Index panel_width_for(Index m) {
  const Index panels = (m + panel_width<T>() - 1) / panel_width<T>();
  if (panels <= 1) return (m + panel_granularity - 1) / panel_granularity * panel_granularity;
  const Index even = (m + panels - 1) / panels;
  return (even + panel_granularity - 1) / panel_granularity * panel_granularity;
}

template <class T>
SparseMatrix<T>::SparseMatrix(std::vector<Index> offsets, std::vector<std::int32_t> indices, std::vector<T> values)
    : offsets_(std::move(offsets)), indices_(std::move(indices)), values_(std::move(values)) {
  assert(!offsets_.empty() && offsets_.back() == static_cast<Index>(indices_.size()));
  block_begin_.push_back(0);
  Index work = 0;
  for (Index i = 0; i < rows(); ++i) {
    work += offsets_[static_cast<std::size_t>(i) + 1] - offsets_[static_cast<std::size_t>(i)] + 4;
    if (work >= work_per_block || i + 1 == rows()) {
      block_begin_.push_back(i + 1);
      work = 0;
    }
  }
}

template <class T>
void SparseMatrix<T>::multiply(const T* panel, Index width, const ProductTarget<T>& target,
                               const Execution& execution) const {
  const RowKernel<T> kernel = kernel_for<T>(width);
  assert(kernel != nullptr && target.columns <= width);
  parallel_for(static_cast<Index>(block_begin_.size()) - 1, execution, [&](Index block) {
    const auto b = static_cast<std::size_t>(block);
    kernel(offsets_.data(), indices_.data(), values_.data(), block_begin_[b], block_begin_[b + 1], panel, target);
  });
}

template <class T>
SparseMatrix<T> SparseMatrix<T>::transposed(Index columns, const Execution& execution) const {
  // A part of the rows per thread, each with its own place in every column; the outcome does not depend on the parts.
  const Index parts = std::clamp<Index>(rows() / rows_per_part, 1, std::max(execution.threads, 1));
  const Blocks blocks(rows(), (rows() + parts - 1) / parts);
  std::vector<Index> next(static_cast<std::size_t>(blocks.number() * columns), 0);
  const auto for_entries = [&](Index block, const auto& body) {
    Index* const mine = next.data() + block * columns;
    for (Index i = blocks.first(block); i < blocks.first(block) + blocks.length(block); ++i) {
      for (Index k = offsets_[static_cast<std::size_t>(i)]; k < offsets_[static_cast<std::size_t>(i) + 1]; ++k) {
        body(i, static_cast<std::size_t>(k), mine[indices_[static_cast<std::size_t>(k)]]++);
      }
    }
  };
  parallel_for(blocks.number(), execution, [&](Index block) { for_entries(block, [](Index, std::size_t, Index) {}); });

  std::vector<Index> offsets(static_cast<std::size_t>(columns) + 1, 0);
  Index at = 0;
  for (Index j = 0; j < columns; ++j) {
    for (Index block = 0; block < blocks.number(); ++block) {
      at += std::exchange(next[static_cast<std::size_t>(block * columns + j)], at);
    }
    offsets[static_cast<std::size_t>(j) + 1] = at;
  }

  std::vector<std::int32_t> indices(indices_.size());
  std::vector<T> values(values_.size());
  parallel_for(blocks.number(), execution, [&](Index block) {
    for_entries(block, [&](Index i, std::size_t from, Index to) {
      indices[static_cast<std::size_t>(to)] = static_cast<std::int32_t>(i);
      values[static_cast<std::size_t>(to)] = values_[from];
    });
  });
  return SparseMatrix(std::move(offsets), std::move(indices), std::move(values));
}

template <class T>
void pack_panel(DenseView<const T> S, Index first, Index columns, Index width, T* panel, const Execution& execution) {
  const Blocks blocks(S.rows, rows_per_pack);
  parallel_for(blocks.number(), execution, [&](Index block) {
    for (Index i = blocks.first(block); i < blocks.first(block) + blocks.length(block); ++i) {
      const T* from = S.row(i) + first;
      T* to = panel + i * width;
      std::copy(from, from + columns, to);
      std::fill(to + columns, to + width, T(0));
    }
  });
}

#define TAXOLEARN_INSTANTIATE(T)            \
  template Index panel_width<T>();          \
  template Index panel_width_for<T>(Index); \
  template class SparseMatrix<T>;           \
  template void pack_panel(DenseView<const T>, Index, Index, Index, T*, const Execution&);
TAXOLEARN_INSTANTIATE(float)
TAXOLEARN_INSTANTIATE(double)
#undef TAXOLEARN_INSTANTIATE

}  // namespace taxolearn
