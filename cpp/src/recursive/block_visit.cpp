#include "block_visit.hpp"

namespace taxolearn {
namespace {

/// W[:, lane] += factor * column.
template <class T>
void add_to_lane(const SparseColumn& column, double factor, Index lane, Index width, T* W) {
  for (std::size_t k = 0; k < column.indices.size(); ++k) {
    W[column.indices[k] * width + lane] += static_cast<T>(factor * column.values[k]);
  }
}

/// The nonzero elements of all lanes.
template <class T>
std::vector<SparseColumn> collect(const Buffer<T>& matrix, Index width, Index lanes) {
  std::vector<SparseColumn> out(static_cast<std::size_t>(lanes));
  const Index rows = static_cast<Index>(matrix.size()) / width;
  for (Index i = 0; i < rows; ++i) {
    const T* const row = matrix.data() + i * width;
    for (Index l = 0; l < lanes; ++l) {
      if (row[l] == T(0)) continue;
      out[static_cast<std::size_t>(l)].indices.push_back(static_cast<std::int32_t>(i));
      out[static_cast<std::size_t>(l)].values.push_back(static_cast<double>(row[l]));
    }
  }
  return out;
}

}  // namespace

template <class T>
LaneResult visit(const ClassBlocks& blocks, const ClassBlock& block, const std::vector<double>& variances,
                 const LaneSettings& settings, BlockState& state, VisitWorkspace<T>& workspace,
                 const Execution& execution) {
  LaneWorkspace<T>& work = workspace.lanes;
  const LaneProblem lanes = blocks.lanes(block, variances, workspace.positives);
  const Index width = lanes.width();
  work.duals.assign(static_cast<std::size_t>(blocks.rows() * width), T(0));
  work.weights.assign(static_cast<std::size_t>((blocks.features() + 1) * width), T(0));
  for (std::size_t l = 0; l < block.size(); ++l) {
    const auto lane = static_cast<Index>(l);
    add_to_lane(state.duals[l], 1.0, lane, width, work.duals.data());
    add_to_lane(state.sums[l], lanes.variances[l], lane, width, work.weights.data());
    if (!state.offsets.empty()) add_to_lane(state.offsets[l], 1.0, lane, width, work.weights.data());
  }
  const LaneResult result = descend(lanes, settings, work, execution);
  state.duals = collect(work.duals, width, lanes.lanes());
  workspace.sums.assign(static_cast<std::size_t>((blocks.features() + 1) * width), 0.0);
  add_dual_rows(lanes, work.duals.data(), workspace.sums.data());
  state.sums = collect(workspace.sums, width, lanes.lanes());
  return result;
}

template LaneResult visit<float>(const ClassBlocks&, const ClassBlock&, const std::vector<double>&, const LaneSettings&,
                                 BlockState&, VisitWorkspace<float>&, const Execution&);
template LaneResult visit<double>(const ClassBlocks&, const ClassBlock&, const std::vector<double>&,
                                  const LaneSettings&, BlockState&, VisitWorkspace<double>&, const Execution&);

}  // namespace taxolearn
