// Max-margin Markov trees: fit.
#pragma once

#include "taxolearn/margin/problem.hpp"
#include "taxolearn/solver/conditional_gradient.hpp"

namespace taxolearn {

/// The dual variables of a row: labelings other than its own, as components of the forest, and their shares of C_i.
using MarginDuals = std::vector<VertexWeights>;

struct MarginResult {
  ConditionalGradientResult run;
  Matrix<double> weights;          ///< linear: d x components, omega included; their products with x are gradients
  Matrix<double> multipliers;      ///< other kernels: n x components, omega included
  std::vector<double> intercepts;  ///< length components
  double seconds = 0.0;
};

/// Solves the problem until the duality gap is small enough, from the given dual variables, where it also ends: of another
/// C for a warm start, or empty. Throws InvalidArgument for bad input. The result is the same for any number of threads.
///
/// Memory beside X: linear, 8 d bytes per component; else 8 n bytes per component, and 8 n^2 for the kernel matrix if
/// this is within the limit, or 512 n for 64 of its rows. Dual variables take a byte per component for each of the few
/// labelings that a row has.
MarginResult fit_margin(const MarginProblem& problem, const ConditionalGradientSettings& settings, MarginDuals& duals,
                        const Execution& execution);

}  // namespace taxolearn
