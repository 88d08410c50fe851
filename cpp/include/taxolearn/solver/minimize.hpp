// What minimizers in a search space have in common: settings, result, and when to stop.
#pragma once

#include <functional>
#include <limits>

#include "taxolearn/solver/space.hpp"

namespace taxolearn {

enum class Status {
  converged,  ///< the certified relative gap is at most the tolerance
  max_iter,   ///< iterations used up
  stalled,    ///< the gap stopped falling: the limit of the arithmetic
};

struct MinimizeSettings {
  double tolerance = 1e-6;       ///< on the gap relative to the objective
  double least_objective = 0.0;  ///< what smaller objectives count as in the relative gap
  int max_iterations = 1000;
  int history = 5;         ///< pairs kept by L-BFGS
  bool quadratic = false;  ///< whether the objective is quadratic: then conjugate gradients know the best step
  int patience = 40;       ///< iterations without progress before it counts as stalled
};

struct MinimizeResult {
  Status status = Status::max_iter;
  int iterations = 0;
  double objective = 0.0;
  double gap = 0.0;
};

/// Called after every iteration.
using Report = std::function<void(const MinimizeResult&)>;

/// Decides when to stop. The gap need not fall from one iterate to the next, so progress is a new best gap or an
/// objective that falls by more than a thousandth of what the tolerance leaves open.
class Convergence {
 public:
  explicit Convergence(const MinimizeSettings& settings) : settings_(settings) {}

  /// Records an iterate; true when it is time to stop, with the reason in result.status.
  bool done(MinimizeResult& result);

 private:
  const MinimizeSettings& settings_;
  double best_gap_ = std::numeric_limits<double>::infinity();
  double best_objective_ = std::numeric_limits<double>::infinity();
  int without_progress_ = 0;
};

}  // namespace taxolearn
