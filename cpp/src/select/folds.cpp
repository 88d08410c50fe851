#include "taxolearn/select/folds.hpp"

#include <algorithm>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/vector.hpp"

namespace taxolearn {
namespace {

template <class Wanted>
std::vector<Index> rows_where(const std::vector<Index>& of_row, const Wanted& wanted) {
  std::vector<Index> out;
  for (std::size_t i = 0; i < of_row.size(); ++i) {
    if (wanted(of_row[i])) out.push_back(static_cast<Index>(i));
  }
  return out;
}

}  // namespace

std::vector<Index> Folds::held_out(Index fold) const {
  return rows_where(of_row, [fold](Index own) { return own == fold; });
}

std::vector<Index> Folds::trained(Index fold) const {
  return rows_where(of_row, [fold](Index own) { return own != fold; });
}

void ReplicatedCoupling::diag(double* out) const {
  inner_.diag(out);
  for (Index k = 1; k < copies_; ++k) std::copy(out, out + inner_.classes(), out + k * inner_.classes());
}

double QuadraticLikelihood::residual(Index first, Index count, double* u) const {
  thread_local Buffer<double> before;
  const Index size = count * classes();
  before.assign(u, u + size);
  curved_.hessian(first, count, state_.row(first), u);
  const double* const c = c_.row(first);
  const double value = 0.5 * dot_block(before.data(), u, size) - dot_block(before.data(), c, size);
  axpy_block(-1.0, c, u, size);
  return value + row_constant_ * static_cast<double>(count);
}

LinePoint QuadraticLikelihood::line(Index first, Index count, double* u, const double* du) const {
  const Index size = count * classes();
  const double* const c = c_.row(first);
  LinePoint point = curved_.hessian_line(first, count, state_.row(first), u, du);
  point.value += row_constant_ * static_cast<double>(count) - dot_block(u, c, size);
  point.slope -= dot_block(du, c, size);
  return point;
}

void QuadraticLikelihood::curve(Index first, Index count, double* u) const {
  std::copy(state_.row(first), state_.row(first) + count * classes(), u);
}

std::unique_ptr<Likelihood> QuadraticLikelihood::gather(const std::vector<Index>&, const std::vector<double>&) const {
  require(false, "the quadratic model of a likelihood has no parts");
  return nullptr;
}

}  // namespace taxolearn
