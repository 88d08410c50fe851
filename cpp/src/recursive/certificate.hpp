// Weights, objective and duality gap that dual variables stand for.
#pragma once

#include "class_blocks.hpp"
#include "taxolearn/base/parallel.hpp"

namespace taxolearn {

struct Certificate {
  double objective = 0.0;             ///< P at these weights
  double gap = 0.0;                   ///< P - D
  std::vector<SparseColumn> weights;  ///< v_n A_n per node
};

/// All in double precision, a few classes at a time.
Certificate certify(const ClassBlocks& blocks, const std::vector<SparseColumn>& duals, const Execution& execution);

}  // namespace taxolearn
