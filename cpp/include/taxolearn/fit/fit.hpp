// The fit itself.
#pragma once

#include "taxolearn/base/parallel.hpp"
#include "taxolearn/fit/problem.hpp"
#include "taxolearn/fit/result.hpp"
#include "taxolearn/fit/settings.hpp"

namespace taxolearn {

/// Fits and certifies. Throws InvalidArgument for bad input and Interrupted when the monitor says so;
/// FitResult::status reports everything else.
FitResult fit(const Problem& problem, const FitSettings& settings, const Start& start, const Execution& execution);

}  // namespace taxolearn
