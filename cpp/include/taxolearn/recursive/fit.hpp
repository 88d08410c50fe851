// Recursive regularization with hinge losses: fit.
#pragma once

#include "taxolearn/base/parallel.hpp"
#include "taxolearn/recursive/problem.hpp"
#include "taxolearn/recursive/result.hpp"
#include "taxolearn/recursive/settings.hpp"

namespace taxolearn {

/// Solves the problem until the duality gap is small enough. Begins at the dual variables of another fit with the same
/// rows and classes, which may have other costs, and stays there if they are good enough; null: at zero. Throws
/// InvalidArgument for bad input. The result is the same for any number of threads.
///
/// Memory beside X: the nonzero dual variables and weights, 12 bytes per nonzero each (the weights twice while they are
/// certified), and O((n + d) lanes) per thread for classes apart. Under a tree or a graph the weights of all nodes are
/// stored as a dense matrix if that is small, or at most eight numbers per entry of X; else only features that have a
/// quarter of all nodes are dense. Up to 256 classes, dual variables and weights of classes are dense arrays of
/// 4 (n + d) C bytes, if these are at most 2^24 numbers or eight per entry of X; twice that in double precision. A graph
/// adds the entries of L^-1 in the columns of the classes, where Q = L L^T.
RecursiveResult fit_recursive(const RecursiveProblem& problem, const RecursiveSettings& settings,
                              const std::vector<SparseColumn>* start, const Execution& execution);

}  // namespace taxolearn
