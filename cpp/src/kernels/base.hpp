// What the covariance functions share: scratch memory and the symmetry of their blocks.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/kernels/kernel.hpp"

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
      copy_transposed(below.view(), out);
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
