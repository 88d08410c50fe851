// Preconditioned conjugate gradients for A x = b with a symmetric positive definite A that is known by its
// products.
#pragma once

#include <functional>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"

namespace taxolearn {

struct LinearSystem {
  std::function<void(const double* x, double* out)> apply;                  ///< out = A x
  std::function<void(const double* residual, double* out)> precondition;    ///< out ~ A^-1 residual; may be empty
  std::function<bool(const double* residual, int iterations)> is_accurate;  ///< asked before every product
};

struct PcgWorkspace {
  explicit PcgWorkspace(Index size) : residual(1, size), direction(1, size), product(1, size), conditioned(1, size) {}

  Matrix<double> residual, direction, product, conditioned;
};

struct PcgResult {
  int iterations = 0;  ///< products with A
  bool converged = false;
};

/// Solves from x = 0; x has `size` elements.
PcgResult pcg(const LinearSystem& system, const double* b, double* x, Index size, int max_iterations,
              PcgWorkspace& workspace, const Execution& execution);

}  // namespace taxolearn
