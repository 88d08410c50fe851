#include "taxolearn/likelihood/quadratic_model.hpp"

#include <algorithm>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/vector.hpp"

namespace taxolearn {

double QuadraticLikelihood::residual(Index first, Index count, double* u) const {
  thread_local Buffer<double> before;
  const Index size = count * outputs();
  before.assign(u, u + size);
  other_.hessian(first, count, curvature_.row(first), u);
  const double* const c = c_.row(first);
  const double value = 0.5 * dot_block(before.data(), u, size) - dot_block(before.data(), c, size);
  axpy_block(-1.0, c, u, size);
  return value + row_constant_ * static_cast<double>(count);
}

LinePoint QuadraticLikelihood::line(Index first, Index count, double* u, const double* du) const {
  const Index size = count * outputs();
  const double* const c = c_.row(first);
  LinePoint point = other_.hessian_line(first, count, curvature_.row(first), u, du);
  point.value += row_constant_ * static_cast<double>(count) - dot_block(u, c, size);
  point.slope -= dot_block(du, c, size);
  return point;
}

void QuadraticLikelihood::curvature(Index first, Index count, double* u) const {
  std::copy(curvature_.row(first), curvature_.row(first) + count * outputs(), u);
}

std::unique_ptr<Likelihood> QuadraticLikelihood::subset(const std::vector<Index>&, const std::vector<double>&) const {
  require(false, "the quadratic model of a likelihood has no subsets");
  return nullptr;
}

}  // namespace taxolearn
