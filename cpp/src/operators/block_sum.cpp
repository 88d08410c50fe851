#include "taxolearn/operators/block_sum.hpp"

#include <algorithm>
#include <utility>

#include "taxolearn/base/check.hpp"
#include "taxolearn/kernels/functions.hpp"
#include "taxolearn/operators/subset.hpp"
#include "taxolearn/operators/tiled.hpp"

namespace taxolearn {
namespace {

/// The blocks whose kernel is not linear, side by side.
InputView rest_of(const InputView& X, const std::vector<std::shared_ptr<const Kernel>>& parts) {
  const std::vector<InputBlock>* const blocks = input_blocks(X);
  require(blocks != nullptr && blocks->size() == parts.size(), "the inputs have ",
          blocks == nullptr ? 0 : blocks->size(), " blocks, expected ", parts.size(), ", one for every kernel");
  std::vector<InputView> out;
  for (std::size_t b = 0; b < parts.size(); ++b) {
    if (!parts[b]->linear_variance().has_value()) out.push_back((*blocks)[b].X);
  }
  return side_by_side(out);
}

}  // namespace

bool is_partly_linear(const Kernel& kernel) {
  const std::vector<std::shared_ptr<const Kernel>> parts = kernel.block_parts();
  const auto count =
      std::count_if(parts.begin(), parts.end(), [](const auto& part) { return part->linear_variance().has_value(); });
  return count > 0 && count < static_cast<Index>(parts.size());
}

template <class T>
BlockSum<T>::BlockSum(std::shared_ptr<const Kernel> kernel, InputRows rows, const Execution& execution)
    : kernel_(std::move(kernel)), rows_(std::move(rows)) {
  const std::vector<std::shared_ptr<const Kernel>> parts = kernel_->block_parts();
  std::vector<std::shared_ptr<const Kernel>> others;
  const InputView rest = rest_of(rows_.X, parts);
  for (std::size_t b = 0; b < parts.size(); ++b) {
    const std::optional<double> variance = parts[b]->linear_variance();
    linear_.push_back(nullptr);
    if (variance.has_value()) {
      const InputView& X = (*input_blocks(rows_.X))[b].X;
      linear_.back() = make_matrix_linear<T>(InputRows{X, rows_.selected}, *variance, FeatureOrder::compact, execution);
    } else {
      others.push_back(parts[b]);
    }
  }
  rest_ = std::make_unique<Tiled<T>>(make_block_kernel(std::move(others)), InputRows{rest, rows_.selected}, execution);
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
  rest_->apply_cross(rest_of(Xnew, kernel_->block_parts()), S, out, execution);
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
  const std::vector<std::shared_ptr<const Kernel>> parts = kernel_->block_parts();
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
  return std::make_unique<BlockSum>(kernel_, subset_of(rows_, rows), execution);
}

template class BlockSum<float>;
template class BlockSum<double>;

}  // namespace taxolearn
