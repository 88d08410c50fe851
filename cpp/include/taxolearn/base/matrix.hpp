// Non-owning views of the arrays that enter and leave the library.
//
// Every n x C quantity is row-major, one contiguous row per data point (the "dimension flipping" of Seeger
// 2008, appendix D.3), so that row-wise work and sparse products run on contiguous memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "taxolearn/base/memory.hpp"

namespace taxolearn {

using Index = std::ptrdiff_t;

/// Row-major matrix: element (i, j) is data[i * stride + j].
template <class T>
struct DenseView {
  T* data = nullptr;
  Index rows = 0;
  Index cols = 0;
  Index stride = 0;

  DenseView() = default;
  DenseView(T* data_, Index rows_, Index cols_) : DenseView(data_, rows_, cols_, cols_) {}
  DenseView(T* data_, Index rows_, Index cols_, Index stride_)
      : data(data_), rows(rows_), cols(cols_), stride(stride_) {}

  T* row(Index i) const { return data + i * stride; }
  operator DenseView<const T>() const { return {data, rows, cols, stride}; }
};

/// Compressed sparse rows: row i holds the entries offsets[i] .. offsets[i + 1]. Duplicate entries add up.
template <class Value, class Column>
struct SparseView {
  const Value* values = nullptr;
  const Column* columns = nullptr;
  const Column* offsets = nullptr;
  Index rows = 0;
  Index cols = 0;

  Index nonzeros() const { return rows > 0 ? static_cast<Index>(offsets[rows] - offsets[0]) : 0; }
};

/// Memory on cache-line borders whose elements are left uninitialised until they are written.
template <class T>
struct AlignedAllocator {
  using value_type = T;

  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>&) {}

  T* allocate(std::size_t count) { return static_cast<T*>(allocate_aligned(count * sizeof(T))); }
  void deallocate(T* pointer, std::size_t count) { free_aligned(pointer, count * sizeof(T)); }
  template <class U>
  void construct(U* pointer) {
    ::new (static_cast<void*>(pointer)) U;
  }
  template <class U, class... Arguments>
  void construct(U* pointer, Arguments&&... arguments) {
    ::new (static_cast<void*>(pointer)) U(std::forward<Arguments>(arguments)...);
  }
  friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) { return true; }
  friend bool operator!=(const AlignedAllocator&, const AlignedAllocator&) { return false; }
};

/// Scratch memory: aligned, not initialised.
template <class T>
using Buffer = std::vector<T, AlignedAllocator<T>>;

/// Dense row-major matrix that owns its memory. Elements start at zero.
template <class T>
class Matrix {
 public:
  Matrix() = default;
  Matrix(Index rows, Index cols) : rows_(rows), cols_(cols), data_(static_cast<std::size_t>(rows * cols), T(0)) {}

  /// Leaves the elements uninitialised.
  static Matrix uninitialised(Index rows, Index cols) {
    Matrix out;
    out.rows_ = rows;
    out.cols_ = cols;
    out.data_.resize(static_cast<std::size_t>(rows * cols));
    return out;
  }

  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  Index size() const { return rows_ * cols_; }
  T* data() { return data_.data(); }
  const T* data() const { return data_.data(); }
  T* row(Index i) { return data_.data() + i * cols_; }
  const T* row(Index i) const { return data_.data() + i * cols_; }
  DenseView<T> view() { return {data_.data(), rows_, cols_}; }
  DenseView<const T> view() const { return {data_.data(), rows_, cols_}; }

 private:
  Index rows_ = 0;
  Index cols_ = 0;
  Buffer<T> data_;
};

}  // namespace taxolearn
