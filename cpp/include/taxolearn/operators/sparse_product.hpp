// Products A S of a sparse matrix A with a dense S: every row of the result is a sum of rows of S, kept in
// registers, so each nonzero costs one broadcast and a few fused multiply-adds on contiguous memory.
//
// S comes as a panel: a block of up to panel_width columns, packed contiguously and padded to whole vectors.
// Flops: 2 per nonzero and column. Bytes: one row of the panel per nonzero, mostly from cache, plus 8 or 12
// for index and value. The rows are prefetched some nonzeros ahead, since the processor cannot predict them.
#pragma once

#include <cstdint>
#include <vector>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"

namespace taxolearn {

/// Panels are padded to a multiple of this many columns.
constexpr Index panel_granularity = 8;

/// The widest panel whose accumulators stay in registers, for precision T and the instruction set compiled
/// for.
template <class T>
Index panel_width();

/// Width of the panels that m columns are cut into: equal, at most panel_width(), a multiple of the
/// granularity.
template <class T>
Index panel_width_for(Index m);

/// Where a product puts row i of its result: out.row(i)[0 .. columns) = scale (sum + diagonal[i] self.row(i)) + shift,
/// or is added to it.
template <class T>
struct ProductTarget {
  DenseView<T> out;             ///< rows x (at least) columns
  Index columns = 0;            ///< how many of the panel's columns are wanted
  T scale = 1;                  ///< factor on the sum and the diagonal term
  const T* shift = nullptr;     ///< length columns, or null
  const T* diagonal = nullptr;  ///< length rows, or null; multiplies rows of `self`, a panel
  const T* self = nullptr;
  bool add = false;  ///< to what out holds, instead of the shift
};

template <class T>
class SparseMatrix {
 public:
  SparseMatrix() = default;

  /// Takes compressed rows; offsets has rows + 1 entries.
  SparseMatrix(std::vector<Index> offsets, std::vector<std::int32_t> indices, std::vector<T> values);

  Index rows() const { return static_cast<Index>(offsets_.size()) - 1; }
  Index nonzeros() const { return offsets_.empty() ? 0 : offsets_.back(); }
  const std::vector<Index>& offsets() const { return offsets_; }
  const std::vector<std::int32_t>& indices() const { return indices_; }
  const std::vector<T>& values() const { return values_; }

  /// target = A panel; width is the panel's row length, a multiple of panel_granularity up to panel_width().
  void multiply(const T* panel, Index width, const ProductTarget<T>& target, const Execution& execution) const;

  /// The transpose, whose rows are the columns of this matrix, with the given number of columns.
  SparseMatrix transposed(Index columns, const Execution& execution) const;

 private:
  std::vector<Index> offsets_;
  std::vector<std::int32_t> indices_;
  std::vector<T> values_;
  std::vector<Index> block_begin_;  ///< row ranges of about equal work
};

/// panel[i, 0 .. columns) = S[i, first .. first + columns), the rest of the width zero.
template <class T>
void pack_panel(DenseView<const T> S, Index first, Index columns, Index width, T* panel, const Execution& execution);

}  // namespace taxolearn
