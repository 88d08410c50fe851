#include <cmath>

#include "predictor_space.hpp"
#include "taxolearn/operators/linear.hpp"

namespace taxolearn {

template <class T>
WeightSpace<T>::WeightSpace(const Problem& problem, int slots, const Execution& execution, FitResult& result)
    : PredictorSpace<T>(problem, execution, result), slots_(static_cast<std::size_t>(slots)) {
  const Stopwatch watch(result.timings.setup);
  own_ = make_linear_features<T>(problem.X, problem.prior.variance, execution);
  operator_ = own_.get();
  set_up();
}

template <class T>
WeightSpace<T>::WeightSpace(const Problem& problem, FeatureOperator<T>& features, int slots, const Execution& execution,
                            FitResult& result)
    : PredictorSpace<T>(problem, execution, result), operator_(&features), slots_(static_cast<std::size_t>(slots)) {
  const Stopwatch watch(result.timings.setup);
  set_up();
}

template <class T>
void WeightSpace<T>::set_up() {
  this->result_.algorithm = operator_->algorithm();
  if (KroneckerPreconditioner::is_worthwhile(this->problem_)) {
    preconditioner_ = std::make_unique<KroneckerPreconditioner>(this->problem_, this->execution_);
    slots_.emplace_back();
  }
  W_.assign(static_cast<std::size_t>(operator_->features() * factor_count(this->problem_) + this->u_.cols()), 0.0);
  for (auto& slot : slots_) slot.resize(W_.size());
  image_.resize(static_cast<std::size_t>(this->u_.size()));
  feature_scratch_.resize(static_cast<std::size_t>(operator_->features() * this->u_.cols()));
}

template <class T>
void WeightSpace<T>::project(const T* S, double* out) {
  const Stopwatch watch(this->result_.timings.products);
  const Index classes = this->u_.cols();
  const DenseView<const T> from(S, this->u_.rows(), classes);
  const DenseView<T> sums(feature_scratch_.data(), operator_->features(), classes);
  operator_->project(from, sums, this->execution_);
  const Coupling* const coupling = this->problem_.prior.coupling;
  const Index factors = factor_count(this->problem_);
  for_coupled_blocks(sums.rows, classes, this->execution_, [&](Index first, Index count) {
    double* const to = out + first * factors;
    if (coupling == nullptr) {
      convert_block(sums.row(first), to, count * classes);
      return;
    }
    thread_local Buffer<double> block;
    block.resize(static_cast<std::size_t>(count * classes));
    convert_block(sums.row(first), block.data(), count * classes);
    coupling->to_factors(count, block.data(), to);
  });
  double* const last = out + sums.rows * factors;
  column_sums(from, last, this->execution_);
  for (Index c = 0; c < classes; ++c) last[c] *= std::sqrt(this->problem_.prior.intercept_variance);
}

template <class T>
void WeightSpace<T>::expand(const double* W, T* out) {
  const Stopwatch watch(this->result_.timings.products);
  const Index classes = this->u_.cols();
  const DenseView<T> weights(feature_scratch_.data(), operator_->features(), classes);
  const Coupling* const coupling = this->problem_.prior.coupling;
  const Index factors = factor_count(this->problem_);
  for_coupled_blocks(weights.rows, classes, this->execution_, [&](Index first, Index count) {
    const double* const from = W + first * factors;
    if (coupling == nullptr) {
      convert_block(from, weights.row(first), count * classes);
      return;
    }
    thread_local Buffer<double> block;
    block.resize(static_cast<std::size_t>(count * classes));
    coupling->from_factors(count, from, block.data());
    convert_block(block.data(), weights.row(first), count * classes);
  });
  const double* const last = W + weights.rows * factors;
  std::vector<T> shift(static_cast<std::size_t>(classes));
  const double sigma = std::sqrt(this->problem_.prior.intercept_variance);
  std::transform(last, last + classes, shift.begin(), [sigma](double value) { return static_cast<T>(sigma * value); });
  operator_->expand(weights, DenseView<T>(out, this->u_.rows(), classes), shift.data(), this->execution_);
}

template <class T>
void WeightSpace<T>::start(Buffer<double>&& weights) {
  W_ = std::move(weights);
  expand(W_.data(), image_.data());
  convert(image_.data(), this->u_.data(), this->u_.size(), this->execution_);
}

template <class T>
void WeightSpace<T>::start_at_zero() {
  std::fill(W_.begin(), W_.end(), 0.0);
  std::fill(this->u_.data(), this->u_.data() + this->u_.size(), 0.0);
}

template <class T>
void WeightSpace<T>::rescale() {
  convert(this->u_.data(), image_.data(), this->u_.size(), this->execution_);
  const double factor = this->best_factor(dot(W_.data(), W_.data(), static_cast<Index>(W_.size()), this->execution_));
  axpy(factor - 1.0, image_.data(), this->u_.data(), this->u_.size(), this->execution_);
  for (double& value : W_) value *= factor;
}

template <class T>
double WeightSpace<T>::advance(double step, int slot) {
  const Index size = static_cast<Index>(W_.size());
  if (step != 0.0) axpy(step, slots_[static_cast<std::size_t>(direction_)].data(), W_.data(), size, this->execution_);
  LinePoint sums;
  {
    const Stopwatch watch(this->result_.timings.likelihood);
    sums = this->residuals(step, image_.data(), [](Index, Index, const T*) { return 0.0; });
  }
  ++this->result_.products;  // this projection together with the expansion of the direction that led here
  double* const out = slots_[static_cast<std::size_t>(slot)].data();
  project(image_.data(), out);
  axpy(1.0, W_.data(), out, size, this->execution_);
  this->point_square_ = dot(W_.data(), W_.data(), size, this->execution_);
  return sums.value + 0.5 * this->point_square_;
}

template <class T>
std::vector<double> WeightSpace<T>::inner(int slot, const std::vector<int>& others) {
  const Stopwatch watch(this->result_.timings.vectors);
  return inner_products(slots_[static_cast<std::size_t>(slot)].data(), slots_, others, static_cast<Index>(W_.size()),
                        this->execution_);
}

template <class T>
void WeightSpace<T>::combine(const std::vector<double>& coefficients, int into) {
  double* const vector = slots_[static_cast<std::size_t>(into)].data();
  const Index size = static_cast<Index>(W_.size());
  {
    const Stopwatch watch(this->result_.timings.vectors);
    const LinePoint sums =
        parallel_sum<LinePoint>(Blocks(size, vector_block), this->execution_, [&](Index first, Index count) {
          thread_local Buffer<double> sum;
          sum.resize(static_cast<std::size_t>(count));
          combine_block(coefficients, slots_, first, count, sum.data());
          convert_block(sum.data(), vector + first, count);
          LinePoint part;
          part.value = dot_block(W_.data() + first, sum.data(), count);
          part.slope = dot_block(sum.data(), sum.data(), count);
          return part;
        });
    this->point_direction_ = sums.value;
    this->direction_square_ = sums.slope;
  }
  direction_ = into;
  expand(vector, image_.data());
}

template <class T>
void WeightSpace<T>::renew_preconditioner() {
  const Stopwatch watch(this->result_.timings.vectors);
  preconditioner_->renew(this->u_);
}

template <class T>
void WeightSpace<T>::solve_preconditioner(const std::vector<double>& coefficients, int into) {
  const Stopwatch watch(this->result_.timings.vectors);
  double* const vector = slots_[static_cast<std::size_t>(into)].data();
  const Blocks blocks(static_cast<Index>(W_.size()), vector_block);
  parallel_for(blocks.number(), this->execution_, [&](Index block) {
    thread_local Buffer<double> sum;
    sum.resize(static_cast<std::size_t>(blocks.length(block)));
    combine_block(coefficients, slots_, blocks.first(block), blocks.length(block), sum.data());
    convert_block(sum.data(), vector + blocks.first(block), blocks.length(block));
  });
  preconditioner_->apply(vector);
}

template class WeightSpace<float>;
template class WeightSpace<double>;

}  // namespace taxolearn
