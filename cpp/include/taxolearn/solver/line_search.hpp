// The line search, which costs no kernel product (Seeger 2008, 5.1.2).
#pragma once

#include "taxolearn/solver/space.hpp"

namespace taxolearn {

/// Step length at which the slope of the convex function line() vanishes, to a fifth of its value at zero: a
/// few safeguarded Newton steps from `start`. Returns 0 if no step lowers the objective.
double line_search(SearchSpace& space, double slope_at_zero, double start);

}  // namespace taxolearn
