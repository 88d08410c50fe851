#include <cmath>

#include "predictor_space.hpp"
#include "taxolearn/operators/linear.hpp"

namespace taxolearn {

template <class T>
WeightSpace<T>::WeightSpace(const Problem& problem, int slots, const Execution& execution, Result& result)
    : PredictorSpace<T>(problem, execution, result),
      W_(input_features(problem.X) + 1, this->u_.cols()),
      slots_(static_cast<std::size_t>(slots)) {
  const Stopwatch watch(result.timings.setup);
  operator_ = make_linear_features<T>(problem.X, problem.variance);
  result.algorithm = operator_->algorithm();
  for (auto& slot : slots_) slot.resize(static_cast<std::size_t>(W_.size()));
  image_.resize(static_cast<std::size_t>(this->u_.size()));
  feature_scratch_.resize(static_cast<std::size_t>(operator_->features() * W_.cols()));
}

template <class T>
void WeightSpace<T>::project(const T* S, double* out) {
  const Stopwatch watch(this->result_.timings.products);
  const DenseView<const T> from(S, this->u_.rows(), W_.cols());
  const Index d = operator_->features();
  operator_->project(from, DenseView<T>(feature_scratch_.data(), d, W_.cols()), this->execution_);
  std::copy(feature_scratch_.begin(), feature_scratch_.end(), out);
  double* const last = out + d * W_.cols();
  column_sums(from, last, this->execution_);
  Array(last, W_.cols()) *= std::sqrt(this->problem_.sigma2);
}

template <class T>
void WeightSpace<T>::expand(const double* W, T* out) {
  const Stopwatch watch(this->result_.timings.products);
  const Index d = operator_->features();
  std::transform(W, W + d * W_.cols(), feature_scratch_.begin(), [](double value) { return static_cast<T>(value); });
  std::vector<T> shift(static_cast<std::size_t>(W_.cols()));
  const double sigma = std::sqrt(this->problem_.sigma2);
  std::transform(W + d * W_.cols(), W + W_.size(), shift.begin(),
                 [sigma](double value) { return static_cast<T>(sigma * value); });
  operator_->expand(DenseView<const T>(feature_scratch_.data(), d, W_.cols()),
                    DenseView<T>(out, this->u_.rows(), W_.cols()), shift.data(), this->execution_);
}

template <class T>
void WeightSpace<T>::start(const Matrix<double>& weights) {
  W_ = weights;
  expand(W_.data(), image_.data());
  std::copy(image_.begin(), image_.end(), this->u_.data());
}

template <class T>
double WeightSpace<T>::gradient(int slot) {
  LinePoint sums;
  {
    const Stopwatch watch(this->result_.timings.likelihood);
    sums = this->residuals([&](Index first, Index count, const double* residual) {
      std::copy(residual, residual + count, image_.data() + first);
      return 0.0;
    });
  }
  ++this->result_.products;  // this projection together with the expansion of the direction that led here
  double* const out = slots_[static_cast<std::size_t>(slot)].data();
  project(image_.data(), out);
  axpy(1.0, W_.data(), out, W_.size(), this->execution_);
  this->point_square_ = dot(W_.data(), W_.data(), W_.size(), this->execution_);
  return sums.value + 0.5 * this->point_square_;
}

template <class T>
std::vector<double> WeightSpace<T>::inner(int slot, const std::vector<int>& others) {
  const Stopwatch watch(this->result_.timings.vectors);
  return inner_products(slots_[static_cast<std::size_t>(slot)].data(), slots_, others, W_.size(), this->execution_);
}

template <class T>
void WeightSpace<T>::combine(const std::vector<double>& coefficients, int into) {
  double* const vector = slots_[static_cast<std::size_t>(into)].data();
  {
    const Stopwatch watch(this->result_.timings.vectors);
    const LinePoint sums =
        parallel_sum<LinePoint>(Blocks(W_.size(), vector_block), this->execution_, [&](Index first, Index count) {
          thread_local Buffer<double> sum;
          sum.resize(static_cast<std::size_t>(count));
          combine_block(coefficients, slots_, first, count, sum.data());
          std::copy(sum.begin(), sum.end(), vector + first);
          LinePoint part;
          part.value = (ConstArray<double>(W_.data() + first, count) * Array(sum.data(), count)).sum();
          part.slope = Array(sum.data(), count).square().sum();
          return part;
        });
    this->point_direction_ = sums.value;
    this->direction_square_ = sums.slope;
  }
  direction_ = into;
  expand(vector, image_.data());
}

template <class T>
void WeightSpace<T>::move_point(double step) {
  axpy(step, slots_[static_cast<std::size_t>(direction_)].data(), W_.data(), W_.size(), this->execution_);
}

template class WeightSpace<float>;
template class WeightSpace<double>;

}  // namespace taxolearn
