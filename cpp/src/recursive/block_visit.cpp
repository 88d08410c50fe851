#include "block_visit.hpp"

#include <algorithm>

namespace taxolearn {
namespace {

/// Sums of lanes in W, one column per range of lanes.
std::vector<SparseColumn> sums_of_lanes(const Buffer<double>& W, Index width, const std::vector<Ancestor>& ranges) {
  std::vector<SparseColumn> out(ranges.size());
  const Index rows = static_cast<Index>(W.size()) / width;
  for (Index f = 0; f < rows; ++f) {
    const double* const row = W.data() + f * width;
    if (std::all_of(row, row + width, [](double value) { return value == 0.0; })) continue;
    for (std::size_t k = 0; k < ranges.size(); ++k) {
      double sum = 0.0;
      for (Index l = ranges[k].begin; l < ranges[k].end; ++l) sum += row[l];
      if (sum == 0.0) continue;
      out[k].indices.push_back(static_cast<std::int32_t>(f));
      out[k].values.push_back(sum);
    }
  }
  return out;
}

}  // namespace

template <class T>
VisitResult visit(const ClassBlocks& blocks, const ClassBlock& block, const VisitPlan& plan,
                  const std::vector<SparseColumn>& duals, VisitWorkspace<T>& workspace, const Execution& execution) {
  LaneWorkspace<T>& work = workspace.lanes;
  const LaneProblem lanes = blocks.lanes(block, plan.copies, workspace.positives);
  const Index width = lanes.width();
  work.duals.resize(static_cast<std::size_t>(blocks.rows() * width));
  work.weights.assign(static_cast<std::size_t>((blocks.features() + 1) * width), T(0));
  spread(block, duals, width, work.duals);
  for (const Ancestor& above : *plan.above) {
    const auto node = static_cast<std::size_t>(above.node);
    add_to_lanes((*plan.columns)[node], (*plan.factors)[node], above.begin, above.end, width, work.weights.data());
  }
  std::vector<Ancestor> ranges;
  for (Index l = 0; l < block.count; ++l) {
    const Index c = block.first + l;
    add_to_lanes((*plan.leaves)[static_cast<std::size_t>(c)], blocks.leaf_variance(c), l, l + 1, width,
                 work.weights.data());
    ranges.push_back({c, l, l + 1});
  }

  VisitResult result;
  result.lanes = descend(lanes, plan.settings, work, execution);
  for (Index l = 0; l < block.count; ++l) result.duals.push_back(collect(work.duals, width, l));
  for (Index l = 0; l < block.count; ++l) {
    const SparseColumn& before = duals[static_cast<std::size_t>(block.first + l)];
    for (std::size_t k = 0; k < before.indices.size(); ++k) {
      work.duals[static_cast<std::size_t>(before.indices[k] * width + l)] -= static_cast<T>(before.values[k]);
    }
  }
  workspace.changes.assign(static_cast<std::size_t>((blocks.features() + 1) * width), 0.0);
  add_dual_rows(lanes, work.duals.data(), workspace.changes.data());
  result.leaf_changes = sums_of_lanes(workspace.changes, width, ranges);
  result.changes = sums_of_lanes(workspace.changes, width, *plan.above);
  return result;
}

template VisitResult visit<float>(const ClassBlocks&, const ClassBlock&, const VisitPlan&,
                                  const std::vector<SparseColumn>&, VisitWorkspace<float>&, const Execution&);
template VisitResult visit<double>(const ClassBlocks&, const ClassBlock&, const VisitPlan&,
                                   const std::vector<SparseColumn>&, VisitWorkspace<double>&, const Execution&);

}  // namespace taxolearn
