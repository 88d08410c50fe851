// Prediction with what a fit leaves: weights, or kernel expansions.
#pragma once

#include <memory>
#include <vector>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"
#include "taxolearn/couplings/coupling.hpp"
#include "taxolearn/data/input.hpp"
#include "taxolearn/kernels/kernel.hpp"
#include "taxolearn/likelihood/link.hpp"

namespace taxolearn {

/// out (rows of X x C) = u(x) = weights^T x + intercepts, or the probabilities that the link makes of it at a
/// temperature, or their logarithms. All sums are in double precision.
void predict(const InputView& X, DenseView<const double> weights, const double* intercepts, Link link, Output output,
             DenseView<double> out, const Execution& execution, double temperature = 1.0);
void predict(const InputView& X, DenseView<const float> weights, const double* intercepts, Link link, Output output,
             DenseView<double> out, const Execution& execution, double temperature = 1.0);

/// A kernel expansion to predict with: the kernel, the inputs of its basis, and coefficients.
struct Term {
  std::shared_ptr<const Kernel> kernel;
  InputView basis;
  DenseView<const double> coefficients;  ///< rows of the basis x functions
  DenseView<const double> weights = {};  ///< if there are some: of the features of linear blocks, which the basis lacks
};

/// The same from kernel expansions. With one term its functions are those of the classes; with several, all functions
/// together are those of the columns of R, in the order of their kernels.
void predict(const InputView& X, const std::vector<Term>& terms, const std::vector<Index>& kernel_of,
             const Coupling* coupling, const double* intercepts, Link link, Output output, DenseView<double> out,
             const Execution& execution, double temperature = 1.0);

}  // namespace taxolearn
