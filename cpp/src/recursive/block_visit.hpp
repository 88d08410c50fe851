// A visit of one block of classes: unpack, descend, pack.
#pragma once

#include "class_blocks.hpp"
#include "taxolearn/base/parallel.hpp"

namespace taxolearn {

/// What to do with a block.
struct VisitPlan {
  const std::vector<Ancestor>* above = nullptr;        ///< inner nodes on whose columns its lanes stand
  const std::vector<SparseColumn>* columns = nullptr;  ///< per inner node
  const std::vector<double>* factors = nullptr;        ///< what these columns are multiplied with
  const std::vector<SparseColumn>* leaves = nullptr;   ///< a_l per class
  const std::vector<int>* copies = nullptr;            ///< see ClassBlocks::lanes
  LaneSettings settings;
};

struct VisitResult {
  LaneResult lanes;
  std::vector<SparseColumn> duals;         ///< per lane
  std::vector<SparseColumn> leaf_changes;  ///< of a_l, per lane
  std::vector<SparseColumn> changes;       ///< their sums, per node above
};

/// Memory of one visit.
template <class T>
struct VisitWorkspace {
  LaneWorkspace<T> lanes;
  Buffer<double> changes;  ///< of a_l, (d + 1) x width
  std::vector<std::uint32_t> positives;
};

/// Sets the lanes to w_l = v_l a_l plus the columns above, descends, and tells what it changed. Changes are summed in
/// double precision, so that sums of changes stay equal to what the dual variables stand for.
template <class T>
VisitResult visit(const ClassBlocks& blocks, const ClassBlock& block, const VisitPlan& plan,
                  const std::vector<SparseColumn>& duals, VisitWorkspace<T>& workspace, const Execution& execution);

}  // namespace taxolearn
