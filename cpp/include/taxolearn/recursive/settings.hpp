// How recursive regularization is solved.
#pragma once

#include <cstdint>

namespace taxolearn {

enum class RecursiveMethod {
  joint,        ///< coordinate ascent of the dual of the whole problem
  alternating,  ///< the paper's: nodes of one colour given their neighbours, odd and even levels of a tree
};

struct RecursiveSettings {
  RecursiveMethod method = RecursiveMethod::joint;
  double tolerance = 1e-3;    ///< on the certified gap of the whole problem relative to its objective
  int max_iterations = 1000;  ///< sweeps over all classes
  std::uint64_t seed = 0;     ///< of the order of rows
};

}  // namespace taxolearn
