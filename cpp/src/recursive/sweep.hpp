// One sweep of a solver over all classes.
#pragma once

#include <memory>

#include "block_visit.hpp"
#include "class_blocks.hpp"
#include "taxolearn/base/parallel.hpp"

namespace taxolearn {

struct SweepSettings {
  bool single = true;  ///< precision of the descent
  double tolerance = 1e-3;
  std::uint64_t seed = 0;
};

/// What a sweep found on its way; the certificate tells how good it really is.
struct SweepResult {
  double gap = 0.0;
  double objective = 0.0;
  double visits = 0.0;  ///< of a row for a class
};

class Sweeps {
 public:
  virtual ~Sweeps() = default;
  virtual SweepResult sweep(std::vector<SparseColumn>& duals, const SweepSettings& settings,
                            const Execution& execution) = 0;
};

/// Both begin at the sums A_n of all nodes that the dual variables stand for.
std::unique_ptr<Sweeps> joint_sweeps(const ClassBlocks& blocks, std::vector<SparseColumn> sums);
std::unique_ptr<Sweeps> alternating_sweeps(const ClassBlocks& blocks, std::vector<SparseColumn> sums);

/// Puts away what a visit found about the classes of a block.
inline void keep_leaves(const ClassBlock& block, VisitResult& result, std::vector<SparseColumn>& duals,
                        std::vector<SparseColumn>& leaves, SweepResult& out) {
  for (Index l = 0; l < block.count; ++l) {
    const auto lane = static_cast<std::size_t>(l), c = static_cast<std::size_t>(block.first + l);
    duals[c] = std::move(result.duals[lane]);
    add(result.leaf_changes[lane], leaves[c]);
  }
  out.gap += result.lanes.gap;
  out.objective += result.lanes.objective;
  out.visits += static_cast<double>(result.lanes.visits * block.count);
}

}  // namespace taxolearn
