// What came out of recursive regularization.
#pragma once

#include <vector>

#include "taxolearn/recursive/problem.hpp"
#include "taxolearn/solver/minimize.hpp"

namespace taxolearn {

struct RecursiveResult {
  Status status = Status::max_iter;
  int iterations = 0;         ///< sweeps over all classes
  double passes = 0.0;        ///< visits of a row for a class, divided by n C
  double objective = 0.0;     ///< P at the weights returned
  double gap = 0.0;           ///< certified in double precision: P - min P <= gap
  double relative_gap = 0.0;  ///< gap / objective
  double seconds = 0.0;
  std::vector<SparseColumn>
      weights;  ///< w_n - w_parent(n) per node, by feature; feature d is the bias. Graph: w per class
  std::vector<SparseColumn> duals;  ///< alpha_il per class, by row
};

}  // namespace taxolearn
