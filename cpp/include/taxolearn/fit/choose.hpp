// Decides, once, what the settings of a fit leave open; the plan states the reason.
#pragma once

#include <string>

#include "taxolearn/fit/problem.hpp"
#include "taxolearn/fit/settings.hpp"

namespace taxolearn {

struct FitPlan {
  Method method = Method::lbfgs;
  Space space = Space::coefficients;
  Precision precision = Precision::double_;  ///< of the first products
  int history = 0;                           ///< pairs that L-BFGS keeps
  std::string reason;                        ///< why this method
};

/// Throws InvalidArgument if the problem does not allow what the settings ask for.
FitPlan choose(const Problem& problem, const FitSettings& settings);

const char* method_name(Method method);

/// The smaller space, unless the settings or the kernel say otherwise.
Space choose_space(const Problem& problem, const FitSettings& settings);

/// Pairs that L-BFGS keeps unless the settings say otherwise.
int choose_history(const Problem& problem, Space space);

/// Whether products in single precision are faster as a whole: in small problems the time goes elsewhere.
bool single_is_worthwhile(const Problem& problem);

/// Memory of the vectors of L-BFGS on this problem, in double precision.
double lbfgs_bytes(const Problem& problem, Space space, int history);

/// Whether exact Newton steps are a matter of seconds, for a problem on which iterations do not converge.
bool exact_is_affordable(const Problem& problem, const FitSettings& settings);

}  // namespace taxolearn
