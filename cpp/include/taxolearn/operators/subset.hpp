// Subsets of rows, as all operators check and compose them.
#pragma once

#include <vector>

#include "taxolearn/kernels/kernel.hpp"

namespace taxolearn {

/// Throws InvalidArgument unless `rows` is a subset of 0 .. n - 1, not empty and without repetition.
void require_subset(const std::vector<Index>& rows, Index n);

/// The chosen ones of some rows, numbered as these are, in the order of the choice.
InputRows subset_of(const InputRows& rows, const std::vector<Index>& chosen);

}  // namespace taxolearn
