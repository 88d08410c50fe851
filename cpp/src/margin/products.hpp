// Products with the multipliers of max-margin Markov trees: by weights under a linear kernel, else by kernel values.
#pragma once

#include <memory>

#include "taxolearn/data/input.hpp"
#include "taxolearn/kernels/kernel.hpp"
#include "taxolearn/solver/conditional_gradient.hpp"

namespace taxolearn {

/// Products that also hand over what predictions need.
class PredictingProducts : public MultiplierProducts {
 public:
  /// Weights (d x components) or multipliers (n x components).
  virtual Matrix<double> take() = 0;
};

std::unique_ptr<PredictingProducts> linear_products(const InputView& X, Index components);

/// The kernel matrix is kept if it takes no more bytes than the limit.
std::unique_ptr<PredictingProducts> kernel_products(const Kernel& kernel, const InputView& X, Index components,
                                                    double memory_limit, const Execution& execution);

}  // namespace taxolearn
