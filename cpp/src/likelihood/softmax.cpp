#include "taxolearn/likelihood/softmax.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/product.hpp"
#include "taxolearn/base/vector.hpp"

namespace taxolearn {

/// Scratch of one block: largest predictor and sum of exponentials of each row.
struct Scales {
  explicit Scales(Index count) : maxima(count), sums(count) {}

  Eigen::ArrayXd log_sums() const { return maxima + sums.log(); }

  Eigen::ArrayXd maxima, sums;
};

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

/// Replaces u by exp(u - maximum of its row). The exponential runs over the whole block at once: short rows would leave
/// its vectors half empty.
void exponentials(Index count, Index classes, double* u, Scales& scales) {
  for (Index i = 0; i < count; ++i) {
    Row row(u + i * classes, classes);
    scales.maxima[i] = row.maxCoeff();
    row -= scales.maxima[i];
  }
  Row block(u, count * classes);
  block = block.exp();
}

/// Replaces u by its softmax.
void normalize(Index count, Index classes, double* u, Scales& scales) {
  exponentials(count, classes, u, scales);
  for (Index i = 0; i < count; ++i) {
    Row row(u + i * classes, classes);
    scales.sums[i] = row.sum();
    row *= 1.0 / scales.sums[i];
  }
}

/// e = exp(e) in single precision.
void exponentials(Index size, float* e) {
  Eigen::Map<Eigen::ArrayXf> all(e, size);
  all = all.exp();
}

/// out = predictors less the largest of them, which is returned; at(c) is a predictor.
template <class At>
double shifted_to_single(Index classes, const At& at, float* out) {
  double most = at(0);
#pragma omp simd reduction(max : most)
  for (Index c = 1; c < classes; ++c) most = std::max(most, at(c));
#pragma omp simd
  for (Index c = 0; c < classes; ++c) out[c] = static_cast<float>(at(c) - most);
  return most;
}

/// Sums of weights e and of their products with the first two powers of what a direction is off a center.
struct Moments {
  double sum = 0.0;
  double first = 0.0;
  double second = 0.0;

  double mean() const { return first / sum; }
  double variance() const { return std::max(second / sum - mean() * mean(), 0.0); }
};

/// The center is the target's own component, which is close to the mean where it matters.
template <class T>
Moments moments_about(Index classes, const T* e, const T* direction, double center) {
  double sum = 0.0;
  double first = 0.0;
  double second = 0.0;
#pragma omp simd reduction(+ : sum, first, second)
  for (Index c = 0; c < classes; ++c) {
    const double shifted = static_cast<double>(direction[c]) - center;
    const double weighted = static_cast<double>(e[c]) * shifted;
    sum += static_cast<double>(e[c]);
    first += weighted;
    second += weighted * shifted;
  }
  return {sum, first, second};
}

}  // namespace

void softmax_rows(Index count, Index classes, double* u) {
  Scales scales(count);
  normalize(count, classes, u, scales);
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

template <class T>
double Softmax::target_dot(Index i, const T* x) const {
  if (labels_ != nullptr) return x[labels_[i]];
  return dot_block(targets_.row(i), x, classes_);
}

double Softmax::residual(Index first, Index count, double* u) const {
  Scales scales(count);
  double loss = 0.0;
  for (Index k = 0; k < count; ++k) loss -= weight(first + k) * target_dot(first + k, u + k * classes_);
  normalize(count, classes_, u, scales);
  const Eigen::ArrayXd log_sums = scales.log_sums();
  for (Index k = 0; k < count; ++k) {
    const Index i = first + k;
    Row row(u + k * classes_, classes_);
    loss += weight(i) * log_sums[k];
    if (labels_ != nullptr) {
      row[labels_[i]] -= 1.0;
    } else {
      row -= ConstRow(targets_.row(i), classes_);
    }
    if (weights_ != nullptr) row *= weights_[i];
  }
  return loss;
}

template <class T>
void Softmax::add_line(Index first, Index count, const T* e, const T* du, Scales& scales, LinePoint& point) const {
  for (Index k = 0; k < count; ++k) {
    const T* const direction = du + k * classes_;
    const Moments moments = moments_about(classes_, e + k * classes_, direction, target_dot(first + k, direction));
    scales.sums[k] = moments.sum;
    point.slope += weight(first + k) * moments.mean();
    point.curvature += weight(first + k) * moments.variance();
  }
  const Eigen::ArrayXd log_sums = scales.log_sums();
  for (Index k = 0; k < count; ++k) point.value += weight(first + k) * log_sums[k];
}

LinePoint Softmax::line(Index first, Index count, double* u, const double* du) const {
  Scales scales(count);
  LinePoint point;
  for (Index k = 0; k < count; ++k) point.value -= weight(first + k) * target_dot(first + k, u + k * classes_);
  exponentials(count, classes_, u, scales);
  add_line(first, count, static_cast<const double*>(u), du, scales, point);
  return point;
}

double Softmax::single_residual(Index first, Index count, const double* u, float* out) const {
  Scales scales(count);
  double loss = 0.0;
  for (Index k = 0; k < count; ++k) {
    const double* const from = u + k * classes_;
    scales.maxima[k] = shifted_to_single(classes_, [from](Index c) { return from[c]; }, out + k * classes_);
    loss -= weight(first + k) * target_dot(first + k, from);
  }
  exponentials(count * classes_, out);
  for (Index k = 0; k < count; ++k) {
    const Index i = first + k;
    float* const row = out + k * classes_;
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (Index c = 0; c < classes_; ++c) sum += static_cast<double>(row[c]);
    scales.sums[k] = sum;
    const float factor = static_cast<float>(weight(i) / sum);
    const float s = static_cast<float>(weight(i));
    if (labels_ != nullptr) {
#pragma omp simd
      for (Index c = 0; c < classes_; ++c) row[c] *= factor;
      row[labels_[i]] -= s;
    } else {
      const double* const target = targets_.row(i);
#pragma omp simd
      for (Index c = 0; c < classes_; ++c) row[c] = factor * row[c] - s * static_cast<float>(target[c]);
    }
  }
  const Eigen::ArrayXd log_sums = scales.log_sums();
  for (Index k = 0; k < count; ++k) loss += weight(first + k) * log_sums[k];
  return loss;
}

LinePoint Softmax::single_line(Index first, Index count, const double* u, double step, const float* du) const {
  Scales scales(count);
  LinePoint point;
  thread_local Buffer<float> e;
  e.resize(static_cast<std::size_t>(count * classes_));
  for (Index k = 0; k < count; ++k) {
    const double* const from = u + k * classes_;
    const float* const direction = du + k * classes_;
    scales.maxima[k] = shifted_to_single(
        classes_, [=](Index c) { return from[c] + step * static_cast<double>(direction[c]); }, e.data() + k * classes_);
    const Index i = first + k;
    point.value -= weight(i) * (target_dot(i, from) + step * target_dot(i, direction));
  }
  exponentials(count * classes_, e.data());
  add_line(first, count, static_cast<const float*>(e.data()), du, scales, point);
  return point;
}

void Softmax::curve(Index, Index count, double* u) const { softmax_rows(count, classes_, u); }

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

void Softmax::hessian(Index first, Index count, const double* state, double* x) const {
  for (Index k = 0; k < count; ++k) {
    const ConstRow pi(state + k * classes_, classes_);
    Row row(x + k * classes_, classes_);
    const double mean = (pi * row).sum();
    row = weight(first + k) * pi * (row - mean);
  }
}

LinePoint Softmax::hessian_line(Index first, Index count, const double* state, const double* u,
                                const double* du) const {
  LinePoint point;
  for (Index k = 0; k < count; ++k) {
    const ConstRow pi(state + k * classes_, classes_);
    const ConstRow at(u + k * classes_, classes_);
    const ConstRow direction(du + k * classes_, classes_);
    const double mean = (pi * at).sum();
    const double mean_direction = (pi * direction).sum();
    const double s = weight(first + k);
    point.value += 0.5 * s * (pi * (at - mean).square()).sum();
    point.slope += s * (pi * (at - mean) * (direction - mean_direction)).sum();
    point.curvature += s * (pi * (direction - mean_direction).square()).sum();
  }
  return point;
}

void Softmax::root_diagonal(Index first, Index count, const double* state, double* out) const {
  for (Index k = 0; k < count; ++k) {
    const ConstRow pi(state + k * classes_, classes_);
    const double squares = pi.square().sum();
    Row(out + k * classes_, classes_) = weight(first + k) * pi * (1.0 - 2.0 * pi + squares);
  }
}

void Softmax::add_hessian(Index first, Index count, const double* state, double* out) const {
  Matrix<double> roots(count, classes_);
  for (Index k = 0; k < count; ++k) {
    const double s = weight(first + k);
    const double* const pi = state + k * classes_;
    for (Index c = 0; c < classes_; ++c) {
      out[c * classes_ + c] += s * pi[c];
      roots.row(k)[c] = std::sqrt(s) * pi[c];
    }
  }
  add_product(Product::AtB, roots.view(), roots.view(), DenseView<double>(out, classes_, classes_), -1.0);
}

std::unique_ptr<Likelihood> Softmax::gather(const std::vector<Index>& rows, const std::vector<double>& factors) const {
  require(rows.size() == factors.size(), "there are ", rows.size(), " rows and ", factors.size(), " factors");
  std::unique_ptr<Softmax> out(new Softmax());
  out->rows_ = static_cast<Index>(rows.size());
  out->classes_ = classes_;
  if (labels_ == nullptr) out->own_targets_ = Matrix<double>(out->rows_, classes_);
  for (Index k = 0; k < out->rows_; ++k) {
    const Index i = rows[static_cast<std::size_t>(k)];
    require(i >= 0 && i < rows_, "rows contains ", i, ", expected indices in [0, ", rows_, ")");
    out->own_weights_.push_back(weight(i) * factors[static_cast<std::size_t>(k)]);
    if (labels_ != nullptr) {
      out->own_labels_.push_back(labels_[i]);
    } else {
      std::copy(targets_.row(i), targets_.row(i) + classes_, out->own_targets_.row(k));
    }
  }
  check_weights(out->own_weights_.data(), out->rows_);
  out->weights_ = out->own_weights_.data();
  if (labels_ != nullptr) {
    out->labels_ = out->own_labels_.data();
  } else {
    out->targets_ = out->own_targets_.view();
  }
  return out;
}

}  // namespace taxolearn
