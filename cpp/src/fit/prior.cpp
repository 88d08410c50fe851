#include "taxolearn/fit/prior.hpp"

namespace taxolearn {

bool uses_features(const std::vector<std::shared_ptr<const Kernel>>& kernels, const KernelSettings& settings) {
  if (kernels.empty()) return true;
  if (kernels.size() != 1 || settings.algorithm != KernelAlgorithm::automatic) return false;
  return kernels.front()->linear_variance().has_value() || !kernels.front()->linear_block_variances().empty();
}

KernelPrior::KernelPrior(const std::vector<std::shared_ptr<const Kernel>>& kernels, std::vector<Index> kernel_of,
                         const Coupling* coupling, double intercept_variance, const InputView& X,
                         const KernelSettings& settings) {
  prior_.kernel_of = std::move(kernel_of);
  prior_.coupling = coupling;
  prior_.intercept_variance = intercept_variance;
  if (!uses_features(kernels, settings)) {
    matrices_ = std::make_unique<KernelMatrices>(kernels, X, settings);
    prior_.kernels = matrices_.get();
  } else if (!kernels.empty()) {
    prior_.variance = kernels.front()->linear_variance().value_or(1.0);
    prior_.block_variances = kernels.front()->linear_block_variances();
  }
}

}  // namespace taxolearn
