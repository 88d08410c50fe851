#include "predictor_space.hpp"

namespace taxolearn {

template <class T>
PredictorSpace<T>::PredictorSpace(const Problem& problem, const Execution& execution, Result& result)
    : problem_(problem),
      execution_(execution),
      result_(result),
      u_(problem.likelihood->rows(), problem.likelihood->classes()) {}

template <class T>
LineValue PredictorSpace<T>::line(double step) {
  const Stopwatch watch(result_.timings.likelihood);
  const Index classes = u_.cols();
  const T* const du = image();
  const LinePoint loss =
      parallel_sum<LinePoint>(row_blocks(u_.rows(), classes), execution_, [&](Index first, Index count) {
        thread_local Buffer<double> moved, direction;
        const Index size = count * classes;
        moved.resize(static_cast<std::size_t>(size));
        direction.resize(static_cast<std::size_t>(size));
        convert_block(du + first * classes, direction.data(), size);
        convert_block(u_.row(first), moved.data(), size);
        axpy_block(step, direction.data(), moved.data(), size);
        return problem_.likelihood->line(first, count, moved.data(), direction.data());
      });
  LineValue point;
  point.value = loss.value + 0.5 * point_square_ + step * point_direction_ + 0.5 * step * step * direction_square_;
  point.slope = loss.slope + point_direction_ + step * direction_square_;
  point.curvature = loss.curvature + direction_square_;
  return point;
}

template class PredictorSpace<float>;
template class PredictorSpace<double>;

}  // namespace taxolearn
