#include "taxolearn/likelihood/likelihood.hpp"

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/vector.hpp"

namespace taxolearn {

double Likelihood::single_residual(Index first, Index count, const double* u, float* out) const {
  const Index size = count * outputs();
  thread_local Buffer<double> residuals;
  residuals.assign(u, u + size);
  const double loss = residual(first, count, residuals.data());
  convert_block(residuals.data(), out, size);
  return loss;
}

LinePoint Likelihood::single_line(Index first, Index count, const double* u, double step, const float* du) const {
  const Index size = count * outputs();
  thread_local Buffer<double> moved, direction;
  moved.assign(u, u + size);
  direction.assign(du, du + size);
  axpy_block(step, du, moved.data(), size);
  return line(first, count, moved.data(), direction.data());
}

void Likelihood::hessian(Index first, Index count, const double* curvature, double* x) const {
  root_transposed(first, count, curvature, x);
  root(first, count, curvature, x);
}

LinePoint Likelihood::hessian_line(Index first, Index count, const double* curvature, const double* u,
                                   const double* du) const {
  const Index size = count * outputs();
  thread_local Buffer<double> point, direction;
  point.assign(u, u + size);
  direction.assign(du, du + size);
  root_transposed(first, count, curvature, point.data());
  root_transposed(first, count, curvature, direction.data());
  return {0.5 * dot_block(point.data(), point.data(), size), dot_block(direction.data(), point.data(), size),
          dot_block(direction.data(), direction.data(), size)};
}

void Likelihood::hessian_diagonal(Index, Index, const double*, double*) const {
  require(false, "the Hessian of this likelihood is not made of a diagonal");
}

}  // namespace taxolearn
