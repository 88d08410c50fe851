#include "predictor_space.hpp"

#include <cmath>

namespace taxolearn {

template <class T>
PredictorSpace<T>::PredictorSpace(const Problem& problem, const Execution& execution, FitResult& result)
    : problem_(problem),
      execution_(execution),
      result_(result),
      u_(problem.likelihood->rows(), problem.likelihood->outputs()) {}

namespace {

LinePoint line_block(const Likelihood& likelihood, Index first, Index count, const double* u, double step,
                     const float* du) {
  return likelihood.single_line(first, count, u, step, du);
}

LinePoint line_block(const Likelihood& likelihood, Index first, Index count, const double* u, double step,
                     const double* du) {
  thread_local Buffer<double> moved;
  moved.assign(u, u + count * likelihood.outputs());
  axpy_block(step, du, moved.data(), count * likelihood.outputs());
  return likelihood.line(first, count, moved.data(), du);
}

}  // namespace

template <class T>
LineValue PredictorSpace<T>::line(double step) {
  const Stopwatch watch(result_.timings.likelihood);
  const Index classes = u_.cols();
  const T* const du = image();
  const LinePoint loss =
      parallel_sum<LinePoint>(row_blocks(u_.rows(), classes), execution_, [&](Index first, Index count) {
        return line_block(*problem_.likelihood, first, count, u_.row(first), step, du + first * classes);
      });
  LineValue point;
  point.value = loss.value + 0.5 * point_square_ + step * point_direction_ + 0.5 * step * step * direction_square_;
  point.slope = loss.slope + point_direction_ + step * direction_square_;
  point.curvature = loss.curvature + direction_square_;
  return point;
}

template <class T>
double PredictorSpace<T>::best_factor(double square) {
  constexpr int evaluations = 10;
  constexpr double enough = 0.01;
  point_square_ = point_direction_ = direction_square_ = square;
  double low = -1.0;  // factors are from 0 to 2
  double high = 1.0;
  double step = 0.0;
  for (int k = 0; k < evaluations; ++k) {
    const LineValue point = line(step);
    (point.slope < 0.0 ? low : high) = step;
    double next = step - point.slope / point.curvature;
    if (!(next > low && next < high)) next = 0.5 * (low + high);
    const double change = next - step;
    step = next;
    if (std::abs(change) < enough) break;
  }
  return 1.0 + step;
}

template class PredictorSpace<float>;
template class PredictorSpace<double>;

}  // namespace taxolearn
