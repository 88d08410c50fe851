#include "taxolearn/operators/block_linear.hpp"

#include <algorithm>
#include <utility>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/operators/subset.hpp"

namespace taxolearn {

template <class T>
BlockLinear<T>::BlockLinear(InputRows rows, double variance, FeatureOrder order, const Execution& execution)
    : rows_(std::move(rows)), variance_(variance), order_(order) {
  require(input_blocks(rows_.X) != nullptr, "X is one matrix, expected blocks");
  for (const InputBlock& block : blocks()) {
    parts_.push_back(make_matrix_linear<T>(InputRows{block.X, rows_.selected}, variance * block.factor * block.factor,
                                           order, execution));
  }
}

template <class T>
void BlockLinear<T>::set_factors(const InputView& X) {
  require(input_blocks(X) != nullptr && input_blocks(X)->size() == parts_.size(), "X has other blocks");
  rows_.X = X;
  for (std::size_t b = 0; b < parts_.size(); ++b)
    parts_[b]->set_variance(variance_ * blocks()[b].factor * blocks()[b].factor);
}

template <class T>
void BlockLinear<T>::apply(DenseView<const T> S, DenseView<T> out, const T* shift, const Execution& execution) {
  parts_.front()->apply(S, out, shift, execution);
  for (std::size_t b = 1; b < parts_.size(); ++b) parts_[b]->add_apply(S, out, execution);
}

template <class T>
void BlockLinear<T>::apply_cross(const InputView& Xnew, DenseView<const T> S, DenseView<T> out,
                                 const Execution& execution) {
  const std::vector<InputBlock>* const fresh = input_blocks(Xnew);
  require(fresh != nullptr && fresh->size() == parts_.size(), "Xnew has ", fresh == nullptr ? 0 : fresh->size(),
          " blocks, expected ", parts_.size());
  Matrix<T> part(out.rows, out.cols);
  parts_.front()->apply_cross(fresh->front().X, S, out, execution);
  for (std::size_t b = 1; b < parts_.size(); ++b) {
    parts_[b]->apply_cross((*fresh)[b].X, S, part.view(), execution);
    for (Index i = 0; i < out.rows; ++i) {
      for (Index c = 0; c < out.cols; ++c) out.row(i)[c] += part.row(i)[c];
    }
  }
}

template <class T>
void BlockLinear<T>::diag(double* out) const {
  std::vector<double> part(static_cast<std::size_t>(rows()));
  std::fill(out, out + rows(), 0.0);
  for (const auto& each : parts_) {
    each->diag(part.data());
    for (Index i = 0; i < rows(); ++i) out[i] += part[static_cast<std::size_t>(i)];
  }
}

template <class T>
void BlockLinear<T>::bilinear_grad(DenseView<const T> E, DenseView<const T> F, double* gradient,
                                   const Execution& execution) {
  for (const auto& each : parts_) each->bilinear_grad(E, F, gradient++, execution);
}

template <class T>
std::unique_ptr<Operator<T>> BlockLinear<T>::subset(const std::vector<Index>& rows, const Execution& execution) {
  return std::make_unique<BlockLinear>(subset_of(rows_, rows), variance_, order_, execution);
}

template <class T>
void BlockLinear<T>::project(DenseView<const T> S, DenseView<T> W, const Execution& execution) {
  require_shape("W", W, features(), S.cols);
  for (std::size_t b = 0; b < parts_.size(); ++b)
    parts_[b]->project(S, row_block(W, blocks()[b].first, parts_[b]->features()), execution);
}

template <class T>
void BlockLinear<T>::expand(DenseView<const T> W, DenseView<T> out, const T* shift, const Execution& execution) {
  require_shape("W", W, features(), W.cols);
  const auto own = [&](std::size_t b) { return row_block(W, blocks()[b].first, parts_[b]->features()); };
  parts_.front()->expand(own(0), out, shift, execution);
  for (std::size_t b = 1; b < parts_.size(); ++b) parts_[b]->add_expand(own(b), out, execution);
}

template class BlockLinear<float>;
template class BlockLinear<double>;

}  // namespace taxolearn
