// A prior as values, from Python. Over inputs it becomes a KernelPrior.
#pragma once

#include <memory>
#include <vector>

#include "taxolearn/fit/prior.hpp"

namespace taxolearn::python {

struct PriorValues {
  std::vector<std::shared_ptr<const Kernel>> kernels;
  std::vector<Index> kernel_of;
  std::shared_ptr<const Coupling> coupling;
  double intercept_variance;

  KernelPrior over(const InputView& X, const KernelSettings& settings) const {
    return {kernels, kernel_of, coupling.get(), intercept_variance, X, settings};
  }
};

}  // namespace taxolearn::python
