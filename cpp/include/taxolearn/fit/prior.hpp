// The Gaussian prior on the class functions: a kernel of the inputs, a coupling of the classes, and intercepts.
//
//   K = M (x) G + intercept_variance 1 1^T (x) I,   G = R R^T
//
// on the predictors of all rows and classes; with kernels of their own, the columns of R have different M
// (kernel_product.hpp).
#pragma once

#include <memory>
#include <vector>

#include "taxolearn/couplings/coupling.hpp"
#include "taxolearn/operators/kernel_matrices.hpp"

namespace taxolearn {

struct Prior {
  double variance = 1.0;                     ///< of the linear kernel M = variance X X^T, > 0
  std::vector<double> block_variances = {};  ///< by which each block of X adds to it, > 0; empty: as X has them
  KernelMatrices* kernels = nullptr;         ///< null: the linear kernel
  std::vector<Index> kernel_of = {};         ///< which of these each column of R has; empty: there is one, for all
  const Coupling* coupling = nullptr;        ///< of the C classes; null: the identity
  double intercept_variance = 1.0;           ///< >= 0; 0 means no intercepts
};

/// Whether the features themselves serve for the products: the kernel is linear, in all blocks where X has some, and no
/// other way was asked for.
bool uses_features(const std::vector<std::shared_ptr<const Kernel>>& kernels, const KernelSettings& settings);

/// A prior over inputs from kernels as values, with the matrices it needs. No kernels: the linear kernel of variance 1.
class KernelPrior {
 public:
  /// Borrows the inputs and the coupling.
  KernelPrior(const std::vector<std::shared_ptr<const Kernel>>& kernels, std::vector<Index> kernel_of,
              const Coupling* coupling, double intercept_variance, const InputView& X, const KernelSettings& settings);

  const Prior& get() const { return prior_; }

 private:
  std::unique_ptr<KernelMatrices> matrices_;
  Prior prior_;
};

}  // namespace taxolearn
