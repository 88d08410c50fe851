#include "taxolearn/likelihood/softmax.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/packets.hpp"
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

/// Rows in single precision lie in scratch memory with room for whole vectors.
constexpr Index vector_width = 8;

Index padded(Index classes) { return (classes + vector_width - 1) / vector_width * vector_width; }

/// Calls body(c) for all c below a number of classes, for the last few of them twice: a rest of less than a vector
/// would be slow.
template <class Body>
void for_classes(Index classes, const Body& body) {
  const Index whole = classes / vector_width * vector_width;
#pragma omp simd
  for (Index c = 0; c < whole; ++c) body(c);
  if (whole == classes) return;
  if (whole == 0) {
    for (Index c = 0; c < classes; ++c) body(c);
    return;
  }
#pragma omp simd
  for (Index c = 0; c < vector_width; ++c) body(classes - vector_width + c);
}

/// The largest of at(c).
template <class At>
double largest(Index classes, const At& at) {
  const Index whole = classes / vector_width * vector_width;
  double most = at(classes - 1);
#pragma omp simd reduction(max : most)
  for (Index c = 0; c < whole; ++c) most = std::max(most, at(c));
  const Index rest = whole == 0 ? 0 : classes - vector_width;
#pragma omp simd reduction(max : most)
  for (Index c = 0; c < std::min(classes, vector_width); ++c) most = std::max(most, at(rest + c));
  return most;
}

constexpr float nothing = -200.0F;  // its exponential is nothing beside the largest, which is 1

/// Fills the end of a row in scratch memory, before its classes are written.
void fill_end(Index classes, float value, float* row) {
  if (classes % vector_width == 0) return;
  std::fill_n(row + padded(classes) - vector_width, vector_width, value);
}

/// row (padded) = predictors less the largest of them, which is returned; at(c) is a predictor.
template <class At>
double shifted_to_single(Index classes, const At& at, float* row) {
  const double most = largest(classes, at);
  fill_end(classes, nothing, row);
  for_classes(classes, [&](Index c) { row[c] = static_cast<float>(at(c) - most); });
  return most;
}

/// Asks for the elements of a long array that come a few short rows after this one: rows end before the machine sees
/// that they are read in order.
template <class T>
void prefetch_after(Index classes, const T* row) {
  constexpr Index ahead = 256;
  constexpr Index line = 64 / static_cast<Index>(sizeof(T));
  if (classes > ahead) return;
  for (Index c = 0; c < classes; c += line) prefetch(row + ahead + c);
}

/// Scratch memory of this thread, for single precision.
Buffer<float>& scratch(Index size) {
  thread_local Buffer<float> memory;
  if (static_cast<Index>(memory.size()) < size) memory.resize(static_cast<std::size_t>(size));
  return memory;
}

/// e = exp(e) in single precision.
void exponentials(Index size, float* e) {
  Eigen::Map<Eigen::ArrayXf> all(e, size);
  all = all.exp();
}

/// Sums of weights e and of their products with the first two powers of what a direction is off a center.
struct Moments {
  double sum = 0.0;
  double first = 0.0;
  double second = 0.0;

  double mean() const { return first / sum; }
  double variance() const { return std::max(second / sum - mean() * mean(), 0.0); }
};

/// About the target's own component, which is close to the mean where it matters.
Moments moments_about(Index classes, const double* e, const double* direction, double center) {
  double sum = 0.0;
  double first = 0.0;
  double second = 0.0;
#pragma omp simd reduction(+ : sum, first, second)
  for (Index c = 0; c < classes; ++c) {
    const double shifted = direction[c] - center;
    const double weighted = e[c] * shifted;
    sum += e[c];
    first += weighted;
    second += weighted * shifted;
  }
  return {sum, first, second};
}

/// Adds the moments of elements start .. end, as many of them as fill whole vectors, and moves the start. Sums are over
/// lanes first: a loop over elements would add up its lanes one by one.
template <int Width>
void add_moments(Index& start, Index end, const float* e, const float* shifted, Moments& moments) {
  using Lanes = Eigen::Array<float, Width, 1>;
  if (start + Width > end) return;
  Lanes sum = Lanes::Zero();
  Lanes first = Lanes::Zero();
  Lanes second = Lanes::Zero();
  for (; start + Width <= end; start += Width) {
    const Eigen::Map<const Lanes> weights(e + start), direction(shifted + start);
    const Lanes weighted = weights * direction;
    sum += weights;
    first += weighted;
    second += weighted * direction;
  }
  moments.sum += static_cast<double>(sum.sum());
  moments.first += static_cast<double>(first.sum());
  moments.second += static_cast<double>(second.sum());
}

/// The same for rows in scratch memory, where the direction is shifted already. Sums of many classes are added up in
/// double precision.
Moments moments_of(Index width, const float* e, const float* shifted) {
  constexpr Index together = 512;
  Moments moments;
  for (Index start = 0; start < width;) {
    const Index end = std::min(start + together, width);
    add_moments<2 * vector_width>(start, end, e, shifted, moments);
    add_moments<vector_width>(start, end, e, shifted, moments);
  }
  return moments;
}

double sum_of(Index width, const float* e) {
  using Lanes = Eigen::Array<double, vector_width, 1>;
  Lanes sum = Lanes::Zero();
  for (Index c = 0; c < width; c += vector_width)
    sum += Eigen::Map<const Eigen::Array<float, vector_width, 1>>(e + c).cast<double>();
  return sum.sum();
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
    : Softmax(Targets(labels, rows, classes, weights)) {}

Softmax::Softmax(DenseView<const double> targets, const double* weights) : Softmax(Targets(targets, weights)) {
  for (Index i = 0; i < targets.rows; ++i) {
    const ConstRow row(targets.row(i), classes_);
    require(row.allFinite() && row.minCoeff() >= 0.0 && std::abs(row.sum() - 1.0) <= target_tolerance,
            "targets of row ", i, " are not a distribution: smallest ", row.minCoeff(), ", sum ", row.sum());
  }
}

double Softmax::residual(Index first, Index count, double* u) const {
  Scales scales(count);
  double loss = 0.0;
  for (Index k = 0; k < count; ++k) loss -= weight(first + k) * targets_.dot(first + k, u + k * classes_);
  normalize(count, classes_, u, scales);
  const Eigen::ArrayXd log_sums = scales.log_sums();
  for (Index k = 0; k < count; ++k) {
    const Index i = first + k;
    Row row(u + k * classes_, classes_);
    loss += weight(i) * log_sums[k];
    for (const std::int32_t label : targets_.labels(i)) row[label] -= 1.0;
    if (const double* const target = targets_.numbers(i)) row -= ConstRow(target, classes_);
    if (targets_.weighted()) row *= weight(i);
  }
  return loss;
}

template <class MomentsOf>
void Softmax::add_line(Index first, Index count, Scales& scales, LinePoint& point, const MomentsOf& moments_of) const {
  for (Index k = 0; k < count; ++k) {
    const Moments moments = moments_of(k);
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
  for (Index k = 0; k < count; ++k) point.value -= weight(first + k) * targets_.dot(first + k, u + k * classes_);
  exponentials(count, classes_, u, scales);
  add_line(first, count, scales, point, [&](Index k) {
    const double* const direction = du + k * classes_;
    return moments_about(classes_, u + k * classes_, direction, targets_.dot(first + k, direction));
  });
  return point;
}

double Softmax::single_residual(Index first, Index count, const double* u, float* out) const {
  Scales scales(count);
  const Index width = padded(classes_);
  float* const e = scratch(count * width).data();
  double loss = 0.0;
  for (Index k = 0; k < count; ++k) {
    const double* const from = u + k * classes_;
    scales.maxima[k] = shifted_to_single(classes_, [from](Index c) { return from[c]; }, e + k * width);
    loss -= weight(first + k) * targets_.dot(first + k, from);
  }
  exponentials(count * width, e);
  for (Index k = 0; k < count; ++k) {
    const Index i = first + k;
    const float* const row = e + k * width;
    float* const to = out + k * classes_;
    const double sum = sum_of(width, row);
    scales.sums[k] = sum;
    const float factor = static_cast<float>(weight(i) / sum);
    const float s = static_cast<float>(weight(i));
    if (const double* const target = targets_.numbers(i)) {
      for_classes(classes_, [&](Index c) { to[c] = factor * row[c] - s * static_cast<float>(target[c]); });
    } else {
      for_classes(classes_, [&](Index c) { to[c] = factor * row[c]; });
      for (const std::int32_t label : targets_.labels(i)) to[label] -= s;
    }
  }
  const Eigen::ArrayXd log_sums = scales.log_sums();
  for (Index k = 0; k < count; ++k) loss += weight(first + k) * log_sums[k];
  return loss;
}

LinePoint Softmax::single_line(Index first, Index count, const double* u, double step, const float* du) const {
  Scales scales(count);
  LinePoint point;
  const Index width = padded(classes_);
  float* const e = scratch(2 * count * width).data();
  float* const shifted = e + count * width;
  for (Index k = 0; k < count; ++k) {
    const Index i = first + k;
    const double* const from = u + k * classes_;
    const float* const direction = du + k * classes_;
    const double center = targets_.dot(i, direction);
    prefetch_after(classes_, from);
    prefetch_after(classes_, direction);
    scales.maxima[k] = shifted_to_single(
        classes_, [=](Index c) { return from[c] + step * static_cast<double>(direction[c]); }, e + k * width);
    float* const to = shifted + k * width;
    fill_end(classes_, 0.0F, to);
    for_classes(classes_, [=, single = static_cast<float>(center)](Index c) { to[c] = direction[c] - single; });
    point.value -= weight(i) * (targets_.dot(i, from) + step * center);
  }
  exponentials(count * width, e);
  add_line(first, count, scales, point, [&](Index k) { return moments_of(width, e + k * width, shifted + k * width); });
  return point;
}

void Softmax::curvature(Index, Index count, double* u) const { softmax_rows(count, classes_, u); }

void Softmax::root(Index first, Index count, const double* probabilities, double* x) const {
  for (Index k = 0; k < count; ++k) {
    const ConstRow pi(probabilities + k * classes_, classes_);
    Row row(x + k * classes_, classes_);
    row *= pi.sqrt();
    row -= pi * row.sum();
    if (targets_.weighted()) row *= std::sqrt(weight(first + k));
  }
}

void Softmax::root_transposed(Index first, Index count, const double* probabilities, double* x) const {
  for (Index k = 0; k < count; ++k) {
    const ConstRow pi(probabilities + k * classes_, classes_);
    Row row(x + k * classes_, classes_);
    row -= (pi * row).sum();
    row *= pi.sqrt();
    if (targets_.weighted()) row *= std::sqrt(weight(first + k));
  }
}

void Softmax::hessian(Index first, Index count, const double* probabilities, double* x) const {
  for (Index k = 0; k < count; ++k) {
    const ConstRow pi(probabilities + k * classes_, classes_);
    Row row(x + k * classes_, classes_);
    const double mean = (pi * row).sum();
    row = weight(first + k) * pi * (row - mean);
  }
}

LinePoint Softmax::hessian_line(Index first, Index count, const double* probabilities, const double* u,
                                const double* du) const {
  LinePoint point;
  for (Index k = 0; k < count; ++k) {
    const ConstRow pi(probabilities + k * classes_, classes_);
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

void Softmax::root_diagonal(Index first, Index count, const double* probabilities, double* out) const {
  for (Index k = 0; k < count; ++k) {
    const ConstRow pi(probabilities + k * classes_, classes_);
    const double squares = pi.square().sum();
    Row(out + k * classes_, classes_) = weight(first + k) * pi * (1.0 - 2.0 * pi + squares);
  }
}

void Softmax::add_hessian(Index first, Index count, const double* probabilities, double* out) const {
  Matrix<double> roots(count, classes_);
  for (Index k = 0; k < count; ++k) {
    const double s = weight(first + k);
    const double* const pi = probabilities + k * classes_;
    for (Index c = 0; c < classes_; ++c) {
      out[c * classes_ + c] += s * pi[c];
      roots.row(k)[c] = std::sqrt(s) * pi[c];
    }
  }
  add_product(Product::AtB, roots.view(), roots.view(), DenseView<double>(out, classes_, classes_), -1.0);
}

void Softmax::hessian_diagonal(Index first, Index count, const double* probabilities, double* out) const {
  for (Index k = 0; k < count; ++k)
    Row(out + k * classes_, classes_) = weight(first + k) * ConstRow(probabilities + k * classes_, classes_);
}

std::unique_ptr<Likelihood> Softmax::subset(const std::vector<Index>& rows, const std::vector<double>& factors) const {
  return std::unique_ptr<Likelihood>(new Softmax(targets_.subset(rows, factors)));
}

}  // namespace taxolearn
