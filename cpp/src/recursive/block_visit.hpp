// A visit of one block of classes: unpack, descend, pack.
#pragma once

#include "class_blocks.hpp"
#include "taxolearn/base/parallel.hpp"

namespace taxolearn {

/// What is known about the classes of a block, and becomes better.
struct BlockState {
  std::vector<SparseColumn> duals;    ///< alpha, per lane
  std::vector<SparseColumn> sums;     ///< a_l = sum_i alpha_il y_il x_i, exact in double precision
  std::vector<SparseColumn> offsets;  ///< o_l; none: all zero
};

/// Memory of one visit.
template <class T>
struct VisitWorkspace {
  LaneWorkspace<T> lanes;
  Buffer<double> sums;  ///< (d + 1) x width
  std::vector<std::uint32_t> positives;
};

/// Descends from w_l = o_l + v_l a_l, with variances per class.
template <class T>
LaneResult visit(const ClassBlocks& blocks, const ClassBlock& block, const std::vector<double>& variances,
                 const LaneSettings& settings, BlockState& state, VisitWorkspace<T>& workspace,
                 const Execution& execution);

}  // namespace taxolearn
