// Recursive regularization with hinge losses: fit.
#pragma once

#include "taxolearn/base/parallel.hpp"
#include "taxolearn/recursive/problem.hpp"
#include "taxolearn/recursive/result.hpp"
#include "taxolearn/recursive/settings.hpp"

namespace taxolearn {

/// Solves the problem until the duality gap is small enough. Begins at the dual variables of another fit with the same
/// rows and classes, which may have other costs; null: at zero. Throws InvalidArgument for bad input. The result is the
/// same for any number of threads.
RecursiveResult fit_recursive(const RecursiveProblem& problem, const RecursiveSettings& settings,
                              const std::vector<SparseColumn>* start, const Execution& execution);

}  // namespace taxolearn
