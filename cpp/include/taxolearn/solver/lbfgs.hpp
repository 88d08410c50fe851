// Limited-memory BFGS: one kernel product per iteration.
#pragma once

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/solver/minimize.hpp"

namespace taxolearn {

/// Pairs (steps and differences of gradients) worth keeping if vectors are `relative_size` times as large as n x C.
int lbfgs_history(double relative_size);

/// The same beside products with a kernel matrix, whose n^2 entries cost more than the vectors, and whose problems are
/// worse conditioned.
constexpr int lbfgs_history_of_kernels = 10;

/// Slots that a space must offer: 2 history + 1.
int lbfgs_slots(int history);

/// Memory of the slots, of so many numbers each in double precision; a preconditioner takes one more.
double lbfgs_bytes(Index numbers_per_slot, int history, bool preconditioned);

MinimizeResult lbfgs(SearchSpace& space, const MinimizeSettings& settings, const Report& report);

}  // namespace taxolearn
