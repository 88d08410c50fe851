// The loss of held-out rows at a temperature, and the best one.
#pragma once

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"
#include "taxolearn/likelihood/likelihood.hpp"

namespace taxolearn {

/// A loss of scores s(u) / T.
struct TemperedLoss {
  const Likelihood& loss;
  Link link;  ///< from predictors to scores
  double temperature;

  /// Replaces predictors u by the derivatives of the loss by them, adds that by log T; returns the loss.
  double residual(Matrix<double>& u, double& by_log_temperature, const Execution& execution) const;
};

struct BestTemperature {
  double temperature = 1.0;
  double loss = 0.0;     ///< there
  double penalty = 0.0;  ///< (log T)^2 / 2, which few rows do not outweigh
};

/// Minimizes loss + penalty, which is convex in 1 / T but for the penalty, by Newton steps for log T.
BestTemperature best_temperature(const Likelihood& loss, Link link, Matrix<double> predictors,
                                 const Execution& execution);

}  // namespace taxolearn
