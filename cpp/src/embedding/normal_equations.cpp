#include "normal_equations.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "taxolearn/base/vector.hpp"

namespace taxolearn {
namespace {

constexpr Index rows_per_block = 512;

/// Adds weighted sums and sums of squares of the columns, times the factor of a block.
template <class V, class I>
void add_moments(const SparseView<V, I>& X, const std::vector<double>& weights, double factor, double* sums,
                 double* squares) {
  for (Index i = 0; i < X.rows; ++i) {
    const double w = weights[static_cast<std::size_t>(i)];
    for (I k = X.offsets[i]; k < X.offsets[i + 1]; ++k) {
      const double x = factor * static_cast<double>(X.values[k]);
      sums[X.columns[k]] += w * x;
      squares[X.columns[k]] += w * x * x;
    }
  }
}

template <class V>
void add_moments(const DenseView<V>& X, const std::vector<double>& weights, double factor, double* sums,
                 double* squares) {
  for (Index i = 0; i < X.rows; ++i) {
    const double w = weights[static_cast<std::size_t>(i)];
    for (Index j = 0; j < X.cols; ++j) {
      const double x = factor * static_cast<double>(X.row(i)[j]);
      sums[j] += w * x;
      squares[j] += w * x * x;
    }
  }
}

void add_moments(const BlockedView& X, const std::vector<double>& weights, double, double* sums, double* squares) {
  for (const InputBlock& block : X.blocks) {
    std::visit([&](const auto& x) { add_moments(x, weights, block.factor, sums + block.first, squares + block.first); },
               block.X);
  }
}

}  // namespace

template <class T>
NormalEquations<T>::NormalEquations(const InputView& X, std::vector<double> weights, bool center,
                                    const Execution& execution)
    : X_(X), center_(center), operator_(make_linear_features<T>(X, 1.0, execution)) {
  set_weights(std::move(weights));
}

template <class T>
void NormalEquations<T>::set_weights(std::vector<double> weights) {
  assert(static_cast<Index>(weights.size()) == input_rows(X_));
  weights_ = std::move(weights);
  total_ = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  const auto d = static_cast<std::size_t>(input_features(X_));
  mean_.assign(d, 0.0);
  diagonal_.assign(d, 0.0);
  std::visit([&](const auto& x) { add_moments(x, weights_, 1.0, mean_.data(), diagonal_.data()); }, X_);
  double trace = 0.0;
  for (std::size_t j = 0; j < d; ++j) {
    mean_[j] = center_ ? mean_[j] / total_ : 0.0;
    const double square = diagonal_[j];
    diagonal_[j] = std::max(square - total_ * mean_[j] * mean_[j], 1e-14 * square);
    trace += diagonal_[j];
  }
  unit_ = trace > 0.0 ? trace / static_cast<double>(d) : 1.0;
}

template <class T>
void NormalEquations<T>::expand(DenseView<const T> W, DenseView<T> out, const Execution& execution) {
  std::vector<T> shift;
  if (center_) {
    Matrix<double> sums(1, W.cols);
    for (Index j = 0; j < W.rows; ++j) {
      const double m = mean_[static_cast<std::size_t>(j)];
      if (m == 0.0) continue;
      for (Index c = 0; c < W.cols; ++c) sums.row(0)[c] -= m * static_cast<double>(W.row(j)[c]);
    }
    shift.assign(sums.data(), sums.data() + W.cols);
  }
  operator_->expand(W, out, center_ ? shift.data() : nullptr, execution);
}

template <class T>
void NormalEquations<T>::project(DenseView<T> E, DenseView<T> out, const Execution& execution) {
  const Blocks blocks(E.rows, rows_per_block);
  parallel_for(blocks.number(), execution, [&](Index block) {
    for (Index i = blocks.first(block); i < blocks.first(block) + blocks.length(block); ++i) {
      const auto w = static_cast<T>(weights_[static_cast<std::size_t>(i)]);
      for (Index c = 0; c < E.cols; ++c) E.row(i)[c] *= w;
    }
  });
  operator_->project(E, out, execution);
  if (!center_) return;
  std::vector<double> sums(static_cast<std::size_t>(E.cols));
  column_sums<T>(E, sums.data(), execution);
  for (Index j = 0; j < out.rows; ++j) {
    const double m = mean_[static_cast<std::size_t>(j)];
    for (Index c = 0; c < E.cols; ++c) out.row(j)[c] -= static_cast<T>(m * sums[static_cast<std::size_t>(c)]);
  }
}

template <class T>
void NormalEquations<T>::apply(DenseView<const T> W, double ridge, DenseView<T> out, const Execution& execution) {
  expanded_.resize(static_cast<std::size_t>(rows() * W.cols));
  const DenseView<T> E(expanded_.data(), rows(), W.cols);
  expand(W, E, execution);
  project(E, out, execution);
  if (ridge == 0.0) return;
  const auto factor = static_cast<T>(ridge);
  const Blocks blocks(W.rows, rows_per_block);
  parallel_for(blocks.number(), execution, [&](Index block) {
    for (Index j = blocks.first(block); j < blocks.first(block) + blocks.length(block); ++j) {
      for (Index c = 0; c < W.cols; ++c) out.row(j)[c] += factor * W.row(j)[c];
    }
  });
}

template <class T>
BlockSystem<T> NormalEquations<T>::system(double ridge, const Execution& execution) {
  BlockSystem<T> out;
  out.apply = [this, ridge, &execution](DenseView<const T> W, DenseView<T> to) { apply(W, ridge, to, execution); };
  out.diagonal = diagonal_;
  for (double& each : out.diagonal) each = each + ridge > 0.0 ? each + ridge : 1.0;
  return out;
}

template class NormalEquations<float>;
template class NormalEquations<double>;

}  // namespace taxolearn
