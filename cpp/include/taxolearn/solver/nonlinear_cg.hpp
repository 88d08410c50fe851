// Nonlinear conjugate gradients: one kernel product per iteration, three vectors.
#pragma once

#include "taxolearn/solver/minimize.hpp"

namespace taxolearn {

/// Polak-Ribiere with restarts; three slots.
constexpr int nonlinear_cg_slots = 3;
MinimizeResult nonlinear_cg(SearchSpace& space, const MinimizeSettings& settings, const Report& report);

}  // namespace taxolearn
