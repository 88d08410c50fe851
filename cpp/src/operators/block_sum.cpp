#include "taxolearn/operators/block_sum.hpp"

#include <algorithm>
#include <utility>

#include "taxolearn/base/check.hpp"
#include "taxolearn/kernels/functions.hpp"
#include "taxolearn/operators/subset.hpp"

namespace taxolearn {
namespace {

using Parts = std::vector<std::shared_ptr<const Kernel>>;

bool is_linear(const std::shared_ptr<const Kernel>& part) { return part->linear_variance().has_value(); }

/// The blocks whose kernel is linear, or those whose kernel is not, side by side.
InputView some_blocks(const Parts& parts, const InputView& X, bool linear) {
  const std::vector<InputBlock>* const blocks = input_blocks(X);
  require(blocks != nullptr && blocks->size() == parts.size(), "the inputs have ",
          blocks == nullptr ? 0 : blocks->size(), " blocks, expected ", parts.size(), ", one for every kernel");
  std::vector<InputView> out;
  for (std::size_t b = 0; b < parts.size(); ++b) {
    if (is_linear(parts[b]) == linear) out.push_back((*blocks)[b].X);
  }
  return side_by_side(out);
}

}  // namespace

bool is_partly_linear(const Kernel& kernel) {
  const Parts parts = kernel.block_parts();
  const auto count = std::count_if(parts.begin(), parts.end(), is_linear);
  return count > 0 && count < static_cast<Index>(parts.size());
}

std::shared_ptr<const Kernel> other_kernels(const Kernel& kernel) {
  Parts others;
  for (const auto& part : kernel.block_parts()) {
    if (!is_linear(part)) others.push_back(part);
  }
  return make_block_kernel(std::move(others));
}

InputView other_blocks(const Kernel& kernel, const InputView& X) { return some_blocks(kernel.block_parts(), X, false); }

InputView linear_blocks(const Kernel& kernel, const InputView& X) { return some_blocks(kernel.block_parts(), X, true); }

template <class T>
BlockSum<T>::BlockSum(std::shared_ptr<const Kernel> kernel, InputRows rows, std::unique_ptr<Operator<T>> rest,
                      const Execution& execution)
    : kernel_(std::move(kernel)), rows_(std::move(rows)), rest_(std::move(rest)) {
  const Parts parts = kernel_->block_parts();
  require(input_blocks(rows_.X) != nullptr && input_blocks(rows_.X)->size() == parts.size(), "the inputs do not have ",
          parts.size(), " blocks, one for every kernel");
  for (std::size_t b = 0; b < parts.size(); ++b) {
    linear_.push_back(nullptr);
    if (!is_linear(parts[b])) continue;
    const InputView& X = (*input_blocks(rows_.X))[b].X;
    linear_.back() = make_matrix_linear<T>(InputRows{X, rows_.selected}, *parts[b]->linear_variance(),
                                           FeatureOrder::compact, execution);
  }
}

template <class T>
void BlockSum<T>::apply(DenseView<const T> S, DenseView<T> out, const T* shift, const Execution& execution) {
  rest_->apply(S, out, shift, execution);
  for (const auto& each : linear_) {
    if (each != nullptr) each->add_apply(S, out, execution);
  }
}

template <class T>
void BlockSum<T>::apply_cross(const InputView& Xnew, DenseView<const T> S, DenseView<T> out,
                              const Execution& execution) {
  rest_->apply_cross(other_blocks(*kernel_, Xnew), S, out, execution);
  Matrix<T> part(out.rows, out.cols);
  for (std::size_t b = 0; b < linear_.size(); ++b) {
    if (linear_[b] == nullptr) continue;
    linear_[b]->apply_cross((*input_blocks(Xnew))[b].X, S, part.view(), execution);
    for (Index i = 0; i < out.rows; ++i) {
      for (Index c = 0; c < out.cols; ++c) out.row(i)[c] += part.row(i)[c];
    }
  }
}

template <class T>
void BlockSum<T>::bilinear_grad(DenseView<const T> E, DenseView<const T> F, double* gradient,
                                const Execution& execution) {
  std::vector<double> others(static_cast<std::size_t>(rest_->parameters()));
  rest_->bilinear_grad(E, F, others.data(), execution);
  const double* next = others.data();
  const Parts parts = kernel_->block_parts();
  for (std::size_t b = 0; b < parts.size(); gradient += parts[b++]->parameters()) {
    if (linear_[b] != nullptr) {
      linear_[b]->bilinear_grad(E, F, gradient, execution);
    } else {
      std::copy_n(next, parts[b]->parameters(), gradient);
      next += parts[b]->parameters();
    }
  }
}

template <class T>
std::unique_ptr<Operator<T>> BlockSum<T>::subset(const std::vector<Index>& rows, const Execution& execution) {
  return std::make_unique<BlockSum>(kernel_, subset_of(rows_, rows), rest_->subset(rows, execution), execution);
}

template class BlockSum<float>;
template class BlockSum<double>;

}  // namespace taxolearn
