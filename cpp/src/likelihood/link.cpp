#include "taxolearn/likelihood/link.hpp"

#include <Eigen/Core>
#include <cassert>

#include "taxolearn/likelihood/softmax.hpp"

namespace taxolearn {
namespace {

using Array = Eigen::Map<Eigen::ArrayXd>;

// Both by exp(-|u|), which never overflows.

void logistic(Index size, double* u) {
  Array all(u, size);
  const Eigen::ArrayXd e = (-all.abs()).exp();
  all = (all >= 0.0).select(1.0, e) / (1.0 + e);
}

void log_logistic(Index size, double* u) {
  Array all(u, size);
  const Eigen::ArrayXd e = (-all.abs()).exp();
  all = all.min(0.0) - e.log1p();
}

}  // namespace

void to_scores(Link link, Index size, double* u) {
  if (link == Link::one_of) log_logistic(size, u);
}

void apply_link(Link link, Output output, Index count, Index outputs, double* u, double temperature) {
  assert(has_output(link, output));
  if (output == Output::predictor) return;
  const bool logarithm = output == Output::log_probability;
  to_scores(link, count * outputs, u);
  if (temperature != 1.0) Array(u, count * outputs) /= temperature;
  if (link != Link::logistic) {
    (logarithm ? log_softmax_rows : softmax_rows)(count, outputs, u);
  } else {
    (logarithm ? log_logistic : logistic)(count * outputs, u);
  }
}

}  // namespace taxolearn
