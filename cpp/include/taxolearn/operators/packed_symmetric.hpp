// Some symmetric matrices of one size n, each stored as the tiles on and below its diagonal: two take the memory of one
// n x n square (Seeger 2008, D.1, puts one in each triangle, as BLAS wants a square; tiles lie flat in memory, need no
// partner, and serve symmetric_product.hpp as they are).
//
// Any subset of the rows can be brought to the upper left corner, in place and for all matrices at once ("covariance
// shuffling", D.2): products then run on the leading part.
#pragma once

#include <algorithm>
#include <vector>

#include "taxolearn/kernels/kernel.hpp"
#include "taxolearn/operators/symmetric_product.hpp"

namespace taxolearn {

template <class T>
class PackedSymmetric {
 public:
  PackedSymmetric(Index n, Index count);

  Index size() const { return static_cast<Index>(order_.size()); }
  Index count() const { return count_; }

  /// Matrix l, in the original order, from the entries of its lower triangle. Not after arrange().
  template <class Entry>
  void fill(Index l, const KernelEntries<Entry>& entries, const Execution& execution);

  /// out = M_l S + 1 shift^T on the active rows, with S and out (active x m); shift (length m) may be null.
  /// One product at a time.
  void multiply(Index l, DenseView<const T> S, DenseView<T> out, const T* shift, const Execution& execution);

  /// Element (i, j) of matrix l in the current order.
  T at(Index l, Index i, Index j) const { return matrix(l)[i >= j ? offset(i, j) : offset(j, i)]; }

  /// Diagonal of matrix l over the active rows.
  std::vector<T> diagonal(Index l) const;

  /// Makes the given rows (original indices, each at most once) the active ones, in this order. The others follow, in
  /// no particular order.
  void arrange(const std::vector<Index>& rows, const Execution& execution);

  /// The original order, all rows active.
  void restore(const Execution& execution);

  Index active() const { return active_; }

  /// Original index of the row at each place; the first active() of them are the active rows.
  const std::vector<Index>& order() const { return order_; }

  /// How often elements were moved so far.
  int moves() const { return moves_; }

  double memory_bytes() const { return static_cast<double>(data_.size()) * sizeof(T); }

 private:
  static constexpr Index tile = symmetric_tile(sizeof(T));

  const T* matrix(Index l) const { return data_.data() + l * elements_; }
  T* matrix(Index l) { return data_.data() + l * elements_; }

  /// Place of tile (I, J): the rows of tiles one after the other, those of the last one shorter.
  Index tile_offset(Index I, Index J) const {
    return I * (I + 1) / 2 * tile * tile + J * tile * std::min(tile, size() - I * tile);
  }
  Index offset(Index i, Index j) const { return tile_offset(i / tile, j / tile) + i % tile * tile + j % tile; }

  void permute(const std::vector<Index>& source, const Execution& execution);
  void exchange(const std::vector<Index>& partner, const Execution& execution);
  void require_whole() const;

  Index count_;
  Index elements_;  ///< of one matrix
  Buffer<T> data_;
  std::vector<Index> order_;
  Index active_;
  int moves_ = 0;
  bool whole_ = true;  ///< false once a change was interrupted half-way
  SymmetricProduct<T> product_;
};

/// Memory of `count` matrices of size n with elements of so many bytes.
double packed_symmetric_bytes(Index n, Index count, std::size_t element);

}  // namespace taxolearn
