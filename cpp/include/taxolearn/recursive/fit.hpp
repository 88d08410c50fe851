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
///
/// Memory beside X: the nonzero dual variables and the weights of all nodes, 12 bytes per nonzero each (the weights twice
/// while they are certified), and per thread O((n + d) lanes) for the classes at work, at most 32 of them. Nothing has the
/// size n x classes or d x classes unless the solution itself is dense.
RecursiveResult fit_recursive(const RecursiveProblem& problem, const RecursiveSettings& settings,
                              const std::vector<SparseColumn>* start, const Execution& execution);

}  // namespace taxolearn
