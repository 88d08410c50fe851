#include "taxolearn/likelihood/likelihood.hpp"

#include "taxolearn/base/vector.hpp"

namespace taxolearn {

double Likelihood::single_residual(Index first, Index count, const double* u, float* out) const {
  const Index size = count * classes();
  thread_local Buffer<double> residuals;
  residuals.assign(u, u + size);
  const double loss = residual(first, count, residuals.data());
  convert_block(residuals.data(), out, size);
  return loss;
}

LinePoint Likelihood::single_line(Index first, Index count, const double* u, double step, const float* du) const {
  const Index size = count * classes();
  thread_local Buffer<double> moved, direction;
  moved.assign(u, u + size);
  direction.assign(du, du + size);
  axpy_block(step, du, moved.data(), size);
  return line(first, count, moved.data(), direction.data());
}

}  // namespace taxolearn
