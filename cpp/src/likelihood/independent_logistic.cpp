#include "taxolearn/likelihood/independent_logistic.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/vector.hpp"

namespace taxolearn {
namespace {

template <class T>
using Array = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
template <class T>
using ConstArray = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;

/// Elements whose sums are in single precision, and whose product of numbers from 1 to 2 is far from overflow.
constexpr Index together = 512;

/// Scratch memory of this thread.
template <class T>
T* scratch(Index size) {
  thread_local Buffer<T> memory;
  if (static_cast<Index>(memory.size()) < size) memory.resize(static_cast<std::size_t>(size));
  return memory.data();
}

/// e = exp(-|v|): nothing overflows, and everything else comes from it without loss of digits.
template <class T>
void exponentials(Index size, const T* v, T* e) {
  Array<T>(e, size) = (-ConstArray<T>(v, size).abs()).exp();
}

/// 1 / (1 + exp(-v)).
template <class T>
inline T probability(T v, T e) {
  return (v >= T(0) ? T(1) : e) / (T(1) + e);
}

/// The sum of max(v, 0).
double positive_part(Index size, const double* v) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (Index k = 0; k < size; ++k) {
    const double value = v[k];  // a reference would keep the loop from being vectorised
    sum += std::max(value, 0.0);
  }
  return sum;
}

/// The sum of log(1 + e): one logarithm for many elements.
template <class T>
double log_sum(Index size, const T* e) {
  double sum = 0.0;
  for (Index start = 0; start < size; start += together) {
    const Index end = std::min(start + together, size);
    double product = 1.0;
#pragma omp simd reduction(* : product)
    for (Index k = start; k < end; ++k) product *= 1.0 + static_cast<double>(e[k]);
    sum += std::log(product);
  }
  return sum;
}

/// Sums of log(1 + e), p du and p (1 - p) du^2.
template <class T>
LinePoint derivatives(Index size, const T* v, const T* e, const T* du) {
  LinePoint point;
  for (Index start = 0; start < size; start += together) {
    const Index end = std::min(start + together, size);
    double product = 1.0;
    T slope = 0;
    T curvature = 0;
#pragma omp simd reduction(* : product) reduction(+ : slope, curvature)
    for (Index k = start; k < end; ++k) {
      product *= 1.0 + static_cast<double>(e[k]);
      const T share = T(1) / (T(1) + e[k]);
      slope += (v[k] >= T(0) ? T(1) : e[k]) * share * du[k];
      curvature += e[k] * share * share * du[k] * du[k];
    }
    point.value += std::log(product);
    point.slope += static_cast<double>(slope);
    point.curvature += static_cast<double>(curvature);
  }
  return point;
}

}  // namespace

IndependentLogistic::IndependentLogistic(const std::int32_t* labels, Index rows, Index outputs, const double* weights)
    : IndependentLogistic(Targets(labels, rows, outputs, weights)) {}

IndependentLogistic::IndependentLogistic(const LabelSets& sets, Index outputs, const double* weights)
    : IndependentLogistic(Targets(sets, outputs, weights)) {}

IndependentLogistic::IndependentLogistic(DenseView<const double> targets, const double* weights)
    : IndependentLogistic(Targets(targets, weights)) {
  for (Index i = 0; i < targets.rows; ++i) {
    for (Index c = 0; c < targets.cols; ++c) {
      const double value = targets.row(i)[c];
      require(value >= 0.0 && value <= 1.0, "targets[", i, ", ", c, "] is ", value, ", expected a number from 0 to 1");
    }
  }
}

template <class T>
void IndependentLogistic::flip_labels(Index first, Index count, T* x) const {
  for (Index k = 0; k < count; ++k) {
    T* const row = x + k * outputs_;
    for (const std::int32_t label : targets_.labels(first + k)) row[label] = -row[label];
  }
}

template <class Body>
void IndependentLogistic::for_stretches(Index first, Index count, const Body& body) const {
  for (Index k = 0; k < count;) {
    Index end = k + 1;
    while (end < count && weight(first + end) == weight(first + k)) ++end;
    body(first + k, k * outputs_, (end - k) * outputs_);
    k = end;
  }
}

template <class T>
double IndependentLogistic::log_terms(Index first, Index count, const T* e) const {
  double sum = 0.0;
  for_stretches(first, count,
                [&](Index i, Index place, Index length) { sum += weight(i) * log_sum(length, e + place); });
  return sum;
}

template <class T>
void IndependentLogistic::add_line(Index first, Index count, const T* v, const T* e, const T* du,
                                   LinePoint& point) const {
  for_stretches(first, count, [&](Index i, Index place, Index length) {
    const LinePoint sums = derivatives(length, v + place, e + place, du + place);
    point.value += weight(i) * sums.value;
    point.slope += weight(i) * sums.slope;
    point.curvature += weight(i) * sums.curvature;
  });
  for (Index k = 0; k < count; ++k) {
    for (const std::int32_t label : targets_.labels(first + k)) {
      const Index place = k * outputs_ + label;
      point.slope -= 2.0 * weight(first + k) * static_cast<double>(probability(v[place], e[place]) * du[place]);
    }
  }
}

template <class T>
void IndependentLogistic::to_residuals(Index first, Index count, const T* e, T* v) const {
  for (Index k = 0; k < count; ++k) {
    const auto s = static_cast<T>(weight(first + k));
    T* const row = v + k * outputs_;
    const T* const own = e + k * outputs_;
    const double* const target = targets_.numbers(first + k);
    if (target == nullptr) {
#pragma omp simd
      for (Index c = 0; c < outputs_; ++c) row[c] = s * probability(row[c], own[c]);
    } else {
#pragma omp simd
      for (Index c = 0; c < outputs_; ++c) row[c] = s * (probability(row[c], own[c]) - static_cast<T>(target[c]));
    }
  }
  flip_labels(first, count, v);
}

double IndependentLogistic::residual(Index first, Index count, double* u) const {
  const Index size = count * outputs_;
  double* const e = scratch<double>(size);
  flip_labels(first, count, u);
  exponentials(size, u, e);
  double loss = log_terms(first, count, e);
  for_stretches(first, count,
                [&](Index i, Index place, Index length) { loss += weight(i) * positive_part(length, u + place); });
  for (Index k = 0; k < count; ++k) {
    const double* const target = targets_.numbers(first + k);
    if (target != nullptr) loss -= weight(first + k) * dot_block(target, u + k * outputs_, outputs_);
  }
  to_residuals(first, count, e, u);
  return loss;
}

double IndependentLogistic::single_residual(Index first, Index count, const double* u, float* out) const {
  const Index size = count * outputs_;
  float* const e = scratch<float>(size);
  convert_block(u, out, size);
  flip_labels(first, count, out);
  exponentials(size, out, e);
  double loss = log_terms(first, count, e);
  for_stretches(first, count,
                [&](Index i, Index place, Index length) { loss += weight(i) * positive_part(length, u + place); });
  for (Index k = 0; k < count; ++k) loss -= weight(first + k) * targets_.dot(first + k, u + k * outputs_);
  to_residuals(first, count, e, out);
  return loss;
}

LinePoint IndependentLogistic::line(Index first, Index count, double* u, const double* du) const {
  const Index size = count * outputs_;
  double* const e = scratch<double>(size);
  flip_labels(first, count, u);
  exponentials(size, u, e);
  LinePoint point;
  for_stretches(first, count, [&](Index i, Index place, Index length) {
    point.value += weight(i) * positive_part(length, u + place);
  });
  add_line(first, count, u, e, du, point);
  for (Index k = 0; k < count; ++k) {
    const double* const target = targets_.numbers(first + k);
    if (target == nullptr) break;
    point.value -= weight(first + k) * dot_block(target, u + k * outputs_, outputs_);
    point.slope -= weight(first + k) * dot_block(target, du + k * outputs_, outputs_);
  }
  return point;
}

LinePoint IndependentLogistic::single_line(Index first, Index count, const double* u, double step,
                                           const float* du) const {
  const Index size = count * outputs_;
  float* const e = scratch<float>(2 * size);
  float* const v = e + size;
  LinePoint point;
  for_stretches(first, count, [&](Index i, Index place, Index length) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (Index k = place; k < place + length; ++k) {
      const double moved = u[k] + step * static_cast<double>(du[k]);
      sum += std::max(moved, 0.0);
      v[k] = static_cast<float>(moved);
    }
    point.value += weight(i) * sum;
  });
  flip_labels(first, count, v);
  exponentials(size, v, e);
  add_line(first, count, v, e, du, point);
  for (Index k = 0; k < count; ++k) {
    const Index i = first + k;
    const double direction = targets_.dot(i, du + k * outputs_);
    point.value -= weight(i) * (targets_.dot(i, u + k * outputs_) + step * direction);
    if (targets_.numbers(i) != nullptr) point.slope -= weight(i) * direction;
  }
  return point;
}

void IndependentLogistic::curvature(Index first, Index count, double* u) const {
  const Index size = count * outputs_;
  double* const e = scratch<double>(size);
  exponentials(size, u, e);
  for (Index k = 0; k < count; ++k) {
    const ConstArray<double> own(e + k * outputs_, outputs_);
    Array<double>(u + k * outputs_, outputs_) = weight(first + k) * own / (1.0 + own).square();
  }
}

void IndependentLogistic::root(Index, Index count, const double* diagonal, double* x) const {
  const Index size = count * outputs_;
  Array<double>(x, size) *= ConstArray<double>(diagonal, size).sqrt();
}

void IndependentLogistic::root_transposed(Index first, Index count, const double* diagonal, double* x) const {
  root(first, count, diagonal, x);
}

void IndependentLogistic::hessian(Index, Index count, const double* diagonal, double* x) const {
  const Index size = count * outputs_;
  Array<double>(x, size) *= ConstArray<double>(diagonal, size);
}

LinePoint IndependentLogistic::hessian_line(Index, Index count, const double* diagonal, const double* u,
                                            const double* du) const {
  const Index size = count * outputs_;
  double value = 0.0;
  double slope = 0.0;
  double curvature = 0.0;
#pragma omp simd reduction(+ : value, slope, curvature)
  for (Index k = 0; k < size; ++k) {
    value += diagonal[k] * u[k] * u[k];
    slope += diagonal[k] * u[k] * du[k];
    curvature += diagonal[k] * du[k] * du[k];
  }
  return {0.5 * value, slope, curvature};
}

void IndependentLogistic::root_diagonal(Index, Index count, const double* diagonal, double* out) const {
  std::copy(diagonal, diagonal + count * outputs_, out);
}

void IndependentLogistic::add_hessian(Index, Index count, const double* diagonal, double* out) const {
  for (Index k = 0; k < count; ++k, diagonal += outputs_)
    for (Index c = 0; c < outputs_; ++c) out[c * outputs_ + c] += diagonal[c];
}

void IndependentLogistic::hessian_diagonal(Index, Index count, const double* diagonal, double* out) const {
  std::copy(diagonal, diagonal + count * outputs_, out);
}

std::unique_ptr<Likelihood> IndependentLogistic::subset(const std::vector<Index>& rows,
                                                        const std::vector<double>& factors) const {
  return std::unique_ptr<Likelihood>(new IndependentLogistic(targets_.subset(rows, factors)));
}

}  // namespace taxolearn
