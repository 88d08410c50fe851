#include "taxolearn/solver/pcg.hpp"

#include <algorithm>

#include "taxolearn/base/vector.hpp"

namespace taxolearn {

PcgResult pcg(const LinearSystem& system, const double* b, double* x, Index size, int max_iterations,
              PcgWorkspace& workspace, const Execution& execution) {
  double* const r = workspace.residual.data();
  double* const p = workspace.direction.data();
  double* const q = workspace.product.data();
  double* const z = system.precondition ? workspace.conditioned.data() : r;
  std::copy(b, b + size, r);
  std::fill(x, x + size, 0.0);
  std::fill(p, p + size, 0.0);
  double rho_before = 1.0;
  PcgResult result;
  while (true) {
    if (system.is_accurate(r, result.iterations)) {
      result.converged = true;
      return result;
    }
    if (result.iterations == max_iterations) return result;
    if (system.precondition) system.precondition(r, z);
    const double rho = dot(r, z, size, execution);
    const double beta = result.iterations == 0 ? 0.0 : rho / rho_before;
    const Blocks blocks(size, vector_block);
    parallel_for(blocks.number(), execution, [&](Index block) {
      const Index last = blocks.first(block) + blocks.length(block);
      for (Index k = blocks.first(block); k < last; ++k) p[k] = z[k] + beta * p[k];
    });
    system.apply(p, q);
    ++result.iterations;
    const double curvature = dot(p, q, size, execution);
    if (!(curvature > 0.0)) return result;  // rounding has taken over
    const double step = rho / curvature;
    axpy(step, p, x, size, execution);
    axpy(-step, q, r, size, execution);
    rho_before = rho;
  }
}

}  // namespace taxolearn
