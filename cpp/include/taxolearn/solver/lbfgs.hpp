// Limited-memory BFGS: one kernel product per iteration.
#pragma once

#include "taxolearn/solver/minimize.hpp"

namespace taxolearn {

/// Slots a space must offer: 2 history + 1.
int lbfgs_slots(int history);
MinimizeResult lbfgs(SearchSpace& space, const MinimizeSettings& settings, const Report& report);

}  // namespace taxolearn
