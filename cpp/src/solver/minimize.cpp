#include "taxolearn/solver/minimize.hpp"

#include <algorithm>
#include <cmath>

namespace taxolearn {
namespace {

constexpr double worth = 1e-3;  // objective must fall by this share of the tolerance to count as progress

}  // namespace

bool Convergence::done(MinimizeResult& result) {
  if (!std::isfinite(result.gap) || !std::isfinite(result.objective)) {
    result.status = Status::stalled;
    return true;
  }
  const double allowed = settings_.tolerance * std::max(std::abs(result.objective), settings_.least_objective);
  if (result.gap <= allowed) {  // a squared norm below zero: rounding if it is small, else not a norm
    result.status = result.gap >= -allowed ? Status::converged : Status::stalled;
    return true;
  }
  const double worth_counting = worth * settings_.tolerance * std::abs(result.objective);
  if (result.gap < best_gap_ || result.objective < best_objective_ - worth_counting) {
    best_gap_ = std::min(best_gap_, result.gap);
    best_objective_ = std::min(best_objective_, result.objective);
    without_progress_ = 0;
  } else if (++without_progress_ >= settings_.patience) {
    result.status = Status::stalled;
    return true;
  }
  if (result.iterations >= settings_.max_iterations) {
    result.status = Status::max_iter;
    return true;
  }
  return false;
}

}  // namespace taxolearn
