#include "predictor_space.hpp"
#include "taxolearn/operators/linear.hpp"

namespace taxolearn {

template <class T>
CoefficientSpace<T>::CoefficientSpace(const Problem& problem, int slots, const Execution& execution, FitResult& result)
    : CoefficientSpace(problem, {}, slots, execution, result) {
  const Stopwatch watch(result.timings.setup);
  std::vector<Operator<T>*> operators;
  if (problem.prior.kernels == nullptr) {
    linear_ = make_linear<T>(problem.X, problem.prior.variance, LinearAlgorithm::automatic, execution);
    operators.push_back(linear_.get());
  } else {
    for (const auto& each : problem.prior.kernels->operators<T>(execution)) operators.push_back(each.get());
    result.reason = problem.prior.kernels->reason();
    result.kernel_bytes = problem.prior.kernels->bytes();
  }
  set_up(std::move(operators));
}

template <class T>
CoefficientSpace<T>::CoefficientSpace(const Problem& problem, std::vector<Operator<T>*> operators, int slots,
                                      const Execution& execution, FitResult& result, const std::vector<Index>& rows)
    : PredictorSpace<T>(problem, execution, result),
      preconditioner_(SubspacePreconditioner<T>::make(problem, rows, execution)),
      alpha_(this->u_.rows(), this->u_.cols()),
      coefficients_(static_cast<std::size_t>(slots)),
      images_(static_cast<std::size_t>(slots)),
      scratch_(slots - 1) {
  const Stopwatch watch(result.timings.setup);
  for (auto& slot : coefficients_) slot.resize(static_cast<std::size_t>(alpha_.size()));
  for (auto& slot : images_) slot.resize(static_cast<std::size_t>(alpha_.size()));
  if (!operators.empty()) set_up(std::move(operators));
}

template <class T>
void CoefficientSpace<T>::set_up(std::vector<Operator<T>*> operators) {
  product_ = std::make_unique<KernelProduct<T>>(this->problem_, std::move(operators));
  this->result_.algorithm = product_->algorithm();
}

template <class T>
void CoefficientSpace<T>::multiply(const T* S, T* out) {
  const Stopwatch watch(this->result_.timings.products);
  ++this->result_.products;
  product_->apply(S, out, this->execution_);
}

template <class T>
void CoefficientSpace<T>::kernel(const double* S, double* out) {
  Buffer<T>& from = slot(scratch_);
  Buffer<T>& to = slot_image(scratch_);
  convert(S, from.data(), alpha_.size(), this->execution_);
  multiply(from.data(), to.data());
  convert(to.data(), out, alpha_.size(), this->execution_);
}

template <class T>
void CoefficientSpace<T>::start(const Matrix<double>& coefficients) {
  alpha_ = coefficients;
  kernel(alpha_.data(), this->u_.data());
}

template <class T>
void CoefficientSpace<T>::start_at_zero() {
  std::fill(alpha_.data(), alpha_.data() + alpha_.size(), 0.0);
  std::fill(this->u_.data(), this->u_.data() + this->u_.size(), 0.0);
}

template <class T>
void CoefficientSpace<T>::rescale() {
  direction_ = 0;
  convert(this->u_.data(), images_[0].data(), this->u_.size(), this->execution_);
  const double factor = this->best_factor(dot(alpha_.data(), this->u_.data(), alpha_.size(), this->execution_));
  axpy(factor - 1.0, images_[0].data(), this->u_.data(), alpha_.size(), this->execution_);
  for (Index k = 0; k < alpha_.size(); ++k) alpha_.data()[k] *= factor;
}

template <class T>
double CoefficientSpace<T>::advance(double step, int slot) {
  const T* const direction = coefficients_[static_cast<std::size_t>(direction_)].data();
  T* const out = coefficients_[static_cast<std::size_t>(slot)].data();
  LinePoint sums;
  {
    const Stopwatch watch(this->result_.timings.likelihood);
    sums = this->residuals(step, out, [&](Index first, Index count, T* gradient) {
      double* const alpha = alpha_.data() + first;
      if (step != 0.0) axpy_block(step, direction + first, alpha, count);
#pragma omp simd
      for (Index k = 0; k < count; ++k) gradient[k] = static_cast<T>(alpha[k] + static_cast<double>(gradient[k]));
      return dot_block(alpha, this->u_.data() + first, count);
    });
  }
  this->point_square_ = sums.slope;
  multiply(out, images_[static_cast<std::size_t>(slot)].data());
  return sums.value + 0.5 * this->point_square_;
}

template <class T>
std::vector<double> CoefficientSpace<T>::inner(int slot, const std::vector<int>& others) {
  const Stopwatch watch(this->result_.timings.vectors);
  return inner_products(images_[static_cast<std::size_t>(slot)].data(), coefficients_, others, alpha_.size(),
                        this->execution_);
}

template <class T>
void CoefficientSpace<T>::combine(const std::vector<double>& coefficients, int into) {
  const Stopwatch watch(this->result_.timings.vectors);
  T* const vector = coefficients_[static_cast<std::size_t>(into)].data();
  T* const vector_image = images_[static_cast<std::size_t>(into)].data();
  // One pass writes the direction and its image and takes the two products the line search needs.
  const LinePoint sums =
      parallel_sum<LinePoint>(Blocks(alpha_.size(), vector_block), this->execution_, [&](Index first, Index count) {
        thread_local Buffer<double> sum, sum_image;
        sum.resize(static_cast<std::size_t>(count));
        sum_image.resize(static_cast<std::size_t>(count));
        combine_block(coefficients, coefficients_, first, count, sum.data());
        combine_block(coefficients, images_, first, count, sum_image.data());
        convert_block(sum.data(), vector + first, count);
        convert_block(sum_image.data(), vector_image + first, count);
        LinePoint part;
        part.value = dot_block(alpha_.data() + first, sum_image.data(), count);
        part.slope = dot_block(sum.data(), sum_image.data(), count);
        return part;
      });
  direction_ = into;
  this->point_direction_ = sums.value;
  this->direction_square_ = sums.slope;
}

template <class T>
void CoefficientSpace<T>::renew_preconditioner() {
  const Stopwatch watch(this->result_.timings.vectors);
  if (scratch_ + 1 == static_cast<int>(coefficients_.size())) {  // only solvers that ask for it have its slot
    coefficients_.emplace_back(static_cast<std::size_t>(alpha_.size()));
    images_.emplace_back(static_cast<std::size_t>(alpha_.size()));
  }
  preconditioner_->renew(this->u_, product_->kernel());
}

template <class T>
void CoefficientSpace<T>::solve_preconditioner(const std::vector<double>& coefficients, int into) {
  const Stopwatch watch(this->result_.timings.vectors);
  T* const vector = slot(into).data();
  T* const vector_image = slot_image(into).data();
  const Blocks blocks(alpha_.size(), vector_block);
  parallel_for(blocks.number(), this->execution_, [&](Index block) {
    thread_local Buffer<double> sum;
    const Index first = blocks.first(block);
    const Index count = blocks.length(block);
    sum.resize(static_cast<std::size_t>(count));
    combine_block(coefficients, coefficients_, first, count, sum.data());
    convert_block(sum.data(), vector + first, count);
    combine_block(coefficients, images_, first, count, sum.data());
    convert_block(sum.data(), vector_image + first, count);
  });
  preconditioner_->apply(vector, vector_image);
}

template <class T>
void CoefficientSpace<T>::use_direction(int slot) {
  direction_ = slot;
  this->point_direction_ = dot(alpha_.data(), image(), alpha_.size(), this->execution_);
  this->direction_square_ =
      dot(coefficients_[static_cast<std::size_t>(slot)].data(), image(), alpha_.size(), this->execution_);
}

template <class T>
Matrix<double> CoefficientSpace<T>::kernel_diagonal() const {
  Matrix<double> diagonal;
  product_->diag(diagonal);
  return diagonal;
}

template class CoefficientSpace<float>;
template class CoefficientSpace<double>;

}  // namespace taxolearn
