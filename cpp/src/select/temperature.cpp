#include "temperature.hpp"

#include <algorithm>
#include <cmath>

#include "row_blocks.hpp"

namespace taxolearn {
namespace {

constexpr double longest_step = 1.0;  // of log T
constexpr double least_step = 1e-9;
constexpr int most_steps = 60;

struct LossAndSlope {
  double loss = 0.0;
  double slope = 0.0;

  LossAndSlope& operator+=(const LossAndSlope& other) {
    loss += other.loss;
    slope += other.slope;
    return *this;
  }
};

}  // namespace

double TemperedLoss::residual(Matrix<double>& u, double& by_log_temperature, const Execution& execution) const {
  const Index cols = u.cols();
  const auto sum = parallel_sum<LossAndSlope>(blocks_of(u), execution, [&](Index first, Index count) {
    const Index size = count * cols;
    double* const block = u.row(first);
    const Buffer<double> predictors(block, block + size);
    to_scores(link, size, block);
    if (temperature != 1.0) std::transform(block, block + size, block, [&](double s) { return s / temperature; });
    const Buffer<double> scores(block, block + size);
    LossAndSlope out;
    out.loss = loss.residual(first, count, block);
    for (Index k = 0; k < size; ++k) out.slope -= block[k] * scores[static_cast<std::size_t>(k)];
    if (temperature != 1.0) std::transform(block, block + size, block, [&](double r) { return r / temperature; });
    if (link == Link::one_of) {
      for (Index k = 0; k < size; ++k) block[k] /= 1.0 + std::exp(predictors[static_cast<std::size_t>(k)]);
    }
    return out;
  });
  by_log_temperature += sum.slope;
  return sum.loss;
}

BestTemperature best_temperature(const Likelihood& loss, Link link, Matrix<double> predictors,
                                 const Execution& execution) {
  Matrix<double>& scores = predictors;
  const Blocks blocks = blocks_of(scores);
  parallel_for(blocks.number(), execution, [&](Index block) {
    to_scores(link, blocks.length(block) * scores.cols(), scores.row(blocks.first(block)));
  });
  double log_t = 0.0;
  // The loss as a function of b = 1 / T is that along a line through zero.
  const auto at = [&](double b) {
    return parallel_sum<LinePoint>(blocks, execution, [&](Index first, Index count) {
      Buffer<double> u(scores.row(first), scores.row(first) + count * scores.cols());
      for (double& value : u) value *= b;
      return loss.line(first, count, u.data(), scores.row(first));
    });
  };
  LinePoint point = at(1.0);
  for (int step = 0; step < most_steps; ++step) {
    const double b = std::exp(-log_t);
    const double slope = -b * point.slope + log_t;
    // The second derivative may be negative far away; without its first-order part it is not.
    const double curvature = std::max(b * b * point.curvature + b * point.slope, b * b * point.curvature) + 1.0;
    const double move = std::clamp(-slope / curvature, -longest_step, longest_step);
    double length = 1.0;
    LinePoint next;
    const double value = point.value + 0.5 * log_t * log_t;
    for (;; length *= 0.5) {
      const double there = log_t + length * move;
      next = at(std::exp(-there));
      if (next.value + 0.5 * there * there <= value || length * std::abs(move) < least_step) break;
    }
    log_t += length * move;
    point = next;
    if (length * std::abs(move) < least_step) break;
  }
  return {std::exp(log_t), point.value, 0.5 * log_t * log_t};
}

}  // namespace taxolearn
