#include "taxolearn/likelihood/softmax.hpp"

#include <Eigen/Core>
#include <cmath>
#include <vector>

#include "taxolearn/base/check.hpp"

namespace taxolearn {
namespace {

using Row = Eigen::Map<Eigen::ArrayXd>;
using ConstRow = Eigen::Map<const Eigen::ArrayXd>;

constexpr double target_tolerance = 1e-6;

void check_weights(const double* weights, Index rows) {
  if (weights == nullptr) return;
  for (Index i = 0; i < rows; ++i) {
    require(std::isfinite(weights[i]) && weights[i] >= 0.0, "sample_weight[", i, "] is ", weights[i],
            ", expected a finite number >= 0");
  }
}

}  // namespace

void softmax_rows(Index count, Index classes, double* u, double* log_sums) {
  // The exponential runs over the whole block at once: short rows would leave its vectors half empty.
  for (Index i = 0; i < count; ++i) {
    Row row(u + i * classes, classes);
    const double maximum = row.maxCoeff();
    row -= maximum;
    if (log_sums != nullptr) log_sums[i] = maximum;
  }
  Row block(u, count * classes);
  block = block.exp();
  for (Index i = 0; i < count; ++i) {
    Row row(u + i * classes, classes);
    const double sum = row.sum();
    row *= 1.0 / sum;
    if (log_sums != nullptr) log_sums[i] += std::log(sum);
  }
}

void log_softmax_rows(Index count, Index classes, double* u) {
  for (Index i = 0; i < count; ++i) {
    Row row(u + i * classes, classes);
    row -= row.maxCoeff();
    row -= std::log(row.exp().sum());
  }
}

Softmax::Softmax(const std::int32_t* labels, Index rows, Index classes, const double* weights)
    : labels_(labels), weights_(weights), rows_(rows), classes_(classes) {
  require(classes >= 1, "number of classes is ", classes, ", expected at least 1");
  for (Index i = 0; i < rows; ++i) {
    require(labels[i] >= 0 && labels[i] < classes, "label ", labels[i], " of row ", i,
            " is out of range, expected 0 .. ", classes - 1);
  }
  check_weights(weights, rows);
}

Softmax::Softmax(DenseView<const double> targets, const double* weights)
    : targets_(targets), weights_(weights), rows_(targets.rows), classes_(targets.cols) {
  require(targets.cols >= 1, "targets have shape ", shape(targets), ", expected at least one column");
  for (Index i = 0; i < rows_; ++i) {
    const ConstRow row(targets.row(i), classes_);
    require(row.allFinite() && row.minCoeff() >= 0.0 && std::abs(row.sum() - 1.0) <= target_tolerance,
            "targets of row ", i, " are not a distribution: smallest ", row.minCoeff(), ", sum ", row.sum());
  }
  check_weights(weights, rows_);
}

double Softmax::target_dot(Index i, const double* x) const {
  if (labels_ != nullptr) return x[labels_[i]];
  return (ConstRow(targets_.row(i), classes_) * ConstRow(x, classes_)).sum();
}

double Softmax::residual(Index first, Index count, double* u) const {
  std::vector<double> log_sums(static_cast<std::size_t>(count));
  double loss = 0.0;
  for (Index k = 0; k < count; ++k) loss -= weight(first + k) * target_dot(first + k, u + k * classes_);
  softmax_rows(count, classes_, u, log_sums.data());
  for (Index k = 0; k < count; ++k) {
    const Index i = first + k;
    Row row(u + k * classes_, classes_);
    loss += weight(i) * log_sums[static_cast<std::size_t>(k)];
    if (labels_ != nullptr) {
      row[labels_[i]] -= 1.0;
    } else {
      row -= ConstRow(targets_.row(i), classes_);
    }
    if (weights_ != nullptr) row *= weights_[i];
  }
  return loss;
}

LinePoint Softmax::line(Index first, Index count, double* u, const double* du) const {
  std::vector<double> log_sums(static_cast<std::size_t>(count));
  LinePoint point;
  for (Index k = 0; k < count; ++k) {
    const Index i = first + k;
    point.value -= weight(i) * target_dot(i, u + k * classes_);
    point.slope -= weight(i) * target_dot(i, du + k * classes_);
  }
  softmax_rows(count, classes_, u, log_sums.data());
  for (Index k = 0; k < count; ++k) {
    const ConstRow pi(u + k * classes_, classes_);
    const ConstRow direction(du + k * classes_, classes_);
    const double mean = (pi * direction).sum();
    const double spread = (pi * (direction - mean).square()).sum();
    const double s = weight(first + k);
    point.value += s * log_sums[static_cast<std::size_t>(k)];
    point.slope += s * mean;
    point.curvature += s * spread;
  }
  return point;
}

void Softmax::curve(Index, Index count, double* u) const { softmax_rows(count, classes_, u, nullptr); }

void Softmax::root(Index first, Index count, const double* state, double* x) const {
  for (Index k = 0; k < count; ++k) {
    const ConstRow pi(state + k * classes_, classes_);
    Row row(x + k * classes_, classes_);
    row *= pi.sqrt();
    row -= pi * row.sum();
    if (weights_ != nullptr) row *= std::sqrt(weights_[first + k]);
  }
}

void Softmax::root_transposed(Index first, Index count, const double* state, double* x) const {
  for (Index k = 0; k < count; ++k) {
    const ConstRow pi(state + k * classes_, classes_);
    Row row(x + k * classes_, classes_);
    row -= (pi * row).sum();
    row *= pi.sqrt();
    if (weights_ != nullptr) row *= std::sqrt(weights_[first + k]);
  }
}

void Softmax::root_diagonal(Index first, Index count, const double* state, double* out) const {
  for (Index k = 0; k < count; ++k) {
    const ConstRow pi(state + k * classes_, classes_);
    const double squares = pi.square().sum();
    Row(out + k * classes_, classes_) = weight(first + k) * pi * (1.0 - 2.0 * pi + squares);
  }
}

}  // namespace taxolearn
