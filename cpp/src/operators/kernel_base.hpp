// What the covariance functions share: scratch memory, maps over rows, and the symmetry of their blocks.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "taxolearn/base/check.hpp"
#include "taxolearn/operators/kernel.hpp"

namespace taxolearn {

inline void require_positive(const char* name, double value) {
  require(std::isfinite(value) && value > 0.0, name, " must be positive and finite, got ", value);
}

/// A matrix of scratch memory, not initialised, from a store of this thread. Blocks of sums of products use several at
/// a time.
template <class T>
class Scratch {
 public:
  Scratch(Index rows, Index cols) : rows_(rows), cols_(cols) {
    if (!store().empty()) {
      buffer_ = std::move(store().back());
      store().pop_back();
    }
    if (buffer_.size() < static_cast<std::size_t>(rows * cols)) {
      buffer_ = Buffer<T>();  // nothing to be kept
      buffer_.resize(static_cast<std::size_t>(rows * cols));
    }
  }
  ~Scratch() { store().push_back(std::move(buffer_)); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  DenseView<T> view() { return {buffer_.data(), rows_, cols_}; }
  T* row(Index i) { return buffer_.data() + i * cols_; }

 private:
  static std::vector<Buffer<T>>& store() {
    static thread_local std::vector<Buffer<T>> buffers;
    return buffers;
  }

  Index rows_;
  Index cols_;
  Buffer<T> buffer_;
};

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
auto as_eigen(const DenseView<T>& view) {
  using Plain = RowMajor<std::remove_const_t<T>>;
  using Type = std::conditional_t<std::is_const_v<T>, const Plain, Plain>;
  return Eigen::Map<Type, Eigen::Unaligned, Eigen::OuterStride<>>(view.data, view.rows, view.cols,
                                                                  Eigen::OuterStride<>(view.stride));
}

/// A piece of a row of a size the compiler knows: a few vector registers. Every entry goes through the same
/// instructions wherever it stands, so equal inputs give equal bits.
template <class T>
using Chunk = Eigen::Array<T, 256 / sizeof(T), 1>;

/// row = map(row), chunk by chunk; map(chunk, first index) changes the chunk. The rest is filled up with zeros.
template <class T, class Map>
void map_chunks(T* row, Index count, const Map& map) {
  constexpr Index size = Chunk<T>::SizeAtCompileTime;
  Index k = 0;
  for (; k + size <= count; k += size) {
    Chunk<T> chunk = Eigen::Map<const Chunk<T>>(row + k);
    map(chunk, k);
    Eigen::Map<Chunk<T>>(row + k) = chunk;
  }
  if (k < count) {
    Chunk<T> chunk = Chunk<T>::Zero();
    std::copy(row + k, row + count, chunk.data());
    map(chunk, k);
    std::copy(chunk.data(), chunk.data() + (count - k), row + k);
  }
}

/// What a kernel does for both precisions, given Derived::entries<T>(left, right, execution).
template <class Derived>
class KernelBase : public Kernel {
 public:
  std::unique_ptr<KernelEntries<float>> single_entries(const InputRows& left, const InputRows& right,
                                                       const Execution& execution) const override {
    return static_cast<const Derived&>(*this).template entries<float>(left, right, execution);
  }
  std::unique_ptr<KernelEntries<double>> double_entries(const InputRows& left, const InputRows& right,
                                                        const Execution& execution) const override {
    return static_cast<const Derived&>(*this).template entries<double>(left, right, execution);
  }
};

/// Entries whose blocks are symmetric bit for bit between a list of rows and itself, although matrix products are not:
/// blocks above the diagonal are transposes of those below.
template <class T>
class SymmetricEntries : public KernelEntries<T> {
 public:
  void block(Index i, Index j, DenseView<T> out) const final {
    if (same_ && i < j) {
      Scratch<T> below(out.cols, out.rows);
      compute(j, i, below.view());
      as_eigen(out) = as_eigen(below.view()).transpose();
      return;
    }
    compute(i, j, out);
    if (same_ && i == j) {
      const Index size = std::min(out.rows, out.cols);
      for (Index a = 1; a < size; ++a) {
        for (Index b = 0; b < a; ++b) out.row(b)[a] = out.row(a)[b];
      }
    }
  }

 protected:
  explicit SymmetricEntries(bool same) : same_(same) {}
  virtual void compute(Index i, Index j, DenseView<T> out) const = 0;

 private:
  bool same_;
};

}  // namespace taxolearn
