// How products with kernel matrices are to be done, from Python's words and numbers.
#pragma once

#include <string>

#include "choice.hpp"
#include "taxolearn/operators/kernel_matrices.hpp"

namespace taxolearn::python {

inline KernelSettings as_kernel_settings(const std::string& algorithm, Index rank, double rank_tolerance,
                                         double memory_limit) {
  static const std::map<std::string, KernelAlgorithm> algorithms{{"auto", KernelAlgorithm::automatic},
                                                                 {"gram", KernelAlgorithm::gram},
                                                                 {"tiled", KernelAlgorithm::tiled},
                                                                 {"low_rank", KernelAlgorithm::low_rank}};
  KernelSettings settings;
  settings.algorithm = choose("algorithm", algorithm, algorithms);
  settings.rank = rank;
  settings.tolerance = rank_tolerance;
  settings.memory_limit = memory_limit;
  return settings;
}

}  // namespace taxolearn::python
