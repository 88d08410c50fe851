#include "taxolearn/fit/prior.hpp"

namespace taxolearn {
namespace {

/// The variances v_b where k(x, x') = sum_b v_b x_b . x'_b over the blocks b of the inputs; empty for other kernels.
std::vector<double> linear_block_variances(const Kernel& kernel) {
  std::vector<double> out;
  for (const auto& part : kernel.block_parts()) {
    const std::optional<double> variance = part->linear_variance();
    if (!variance.has_value()) return {};
    out.push_back(*variance);
  }
  return out;
}

}  // namespace

bool uses_features(const std::vector<std::shared_ptr<const Kernel>>& kernels, const KernelSettings& settings) {
  if (kernels.empty()) return true;
  if (kernels.size() != 1 || settings.algorithm != KernelAlgorithm::automatic) return false;
  return kernels.front()->linear_variance().has_value() || !linear_block_variances(*kernels.front()).empty();
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
    prior_.block_variances = linear_block_variances(*kernels.front());
  }
}

}  // namespace taxolearn
