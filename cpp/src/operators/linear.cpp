#include "taxolearn/operators/linear.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "taxolearn/base/check.hpp"
#include "taxolearn/operators/block_linear.hpp"
#include "taxolearn/operators/dense_linear.hpp"
#include "taxolearn/operators/sparse_linear.hpp"
#include "taxolearn/operators/stored.hpp"

namespace taxolearn {
namespace {

constexpr Index rows_per_block = 256;

// A sparse product reaches about a fifth of the speed of a matrix product (DESIGN: 10 to 14 against 57
// GFlop/s), so the n^2 product is faster up to about ten times the nonzeros of a row; for dense inputs up to twice
// the features.
constexpr Index sparse_break_even = 10;
constexpr Index dense_break_even = 2;

/// Fewer rows than this are better stored.
Index break_even(const InputView& X) {
  if (const auto* const blocks = input_blocks(X)) {
    Index sum = 0;
    for (const InputBlock& block : *blocks) sum += break_even(block.X);
    return sum;
  }
  if (!is_sparse(X)) return dense_break_even * input_features(X);
  return sparse_break_even * (input_entries(X) / std::max<Index>(input_rows(X), 1));
}

}  // namespace

template <class T>
Linear<T>::Linear(InputRows rows, double variance) : rows_(std::move(rows)), variance_(1.0) {
  set_variance(variance);
}

template <class T>
void Linear<T>::set_variance(double variance) {
  require(std::isfinite(variance) && variance > 0.0, "variance must be positive and finite, got ", variance);
  variance_ = variance;
}

template <class T>
void Linear<T>::apply_cross(const InputView& Xnew, DenseView<const T> S, DenseView<T> out, const Execution& execution) {
  require(input_features(Xnew) == features(), "Xnew has ", input_features(Xnew), " features, expected ", features());
  require_shape("S", S, rows(), S.cols);
  require_shape("out", out, input_rows(Xnew), S.cols);
  Matrix<double> weights(features(), S.cols);
  Matrix<double> row(1, S.cols);
  for (Index i = 0; i < rows(); ++i) {
    std::transform(S.row(i), S.row(i) + S.cols, row.data(), [this](T s) { return variance_ * static_cast<double>(s); });
    project_columns(rows_.X, rows_.source(i), row.view(), 0, S.cols, weights.view());
  }
  const Blocks blocks(out.rows, rows_per_block);
  parallel_for(blocks.number(), execution, [&](Index block) {
    Matrix<double> part(blocks.length(block), S.cols);
    expand_rows(Xnew, blocks.first(block), weights.view(), part.view());
    for (Index i = 0; i < part.rows(); ++i) {
      std::transform(part.row(i), part.row(i) + S.cols, out.row(blocks.first(block) + i),
                     [](double value) { return static_cast<T>(value); });
    }
  });
}

template <class T>
void Linear<T>::diag(double* out) const {
  std::vector<double> norms(static_cast<std::size_t>(input_rows(rows_.X)));
  squared_norms(rows_.X, norms.data());
  for (Index i = 0; i < rows(); ++i) out[i] = variance_ * norms[static_cast<std::size_t>(rows_.source(i))];
}

template <class T>
void Linear<T>::bilinear_grad(DenseView<const T> E, DenseView<const T> F, double* gradient,
                              const Execution& execution) {
  require_shape("E", E, rows(), E.cols);
  require_shape("F", F, rows(), E.cols);
  Matrix<T> product(F.rows, F.cols);
  this->apply(F, product.view(), nullptr, execution);
  gradient[0] = parallel_sum<double>(Blocks(F.rows, rows_per_block), execution, [&](Index first, Index count) {
    double sum = 0.0;
    for (Index i = first; i < first + count; ++i) {
      for (Index c = 0; c < F.cols; ++c)
        sum += static_cast<double>(E.row(i)[c]) * static_cast<double>(product.row(i)[c]);
    }
    return sum;
  });
}

LinearAlgorithm choose_linear_algorithm(const InputView& X) {
  if (input_rows(X) < break_even(X)) return LinearAlgorithm::stored;
  if (input_blocks(X) != nullptr) return LinearAlgorithm::blocks;
  return is_sparse(X) ? LinearAlgorithm::sparse : LinearAlgorithm::dense;
}

template <class T>
std::unique_ptr<Operator<T>> make_linear(const InputView& X, double variance, LinearAlgorithm algorithm,
                                         const Execution& execution) {
  if (algorithm == LinearAlgorithm::automatic) algorithm = choose_linear_algorithm(X);
  const bool is_dense = !is_sparse(X) && input_blocks(X) == nullptr;
  require(algorithm != LinearAlgorithm::sparse || is_sparse(X), "algorithm \"sparse\" needs sparse inputs");
  require(algorithm != LinearAlgorithm::dense || is_dense, "algorithm \"dense\" needs dense inputs");
  require(algorithm != LinearAlgorithm::blocks || input_blocks(X) != nullptr,
          "algorithm \"blocks\" needs inputs in blocks");
  std::unique_ptr<Operator<T>> factored;
  if (input_blocks(X) != nullptr) {
    factored = std::make_unique<BlockLinear<T>>(InputRows{X, {}}, variance, FeatureOrder::compact, execution);
  } else {
    factored = make_matrix_linear<T>(InputRows{X, {}}, variance, FeatureOrder::compact, execution);
  }
  if (algorithm != LinearAlgorithm::stored) return factored;
  return std::make_unique<Stored<T>>(std::move(factored), execution);
}

template <class T>
std::unique_ptr<FeatureOperator<T>> make_linear_features(const InputView& X, double variance,
                                                         const Execution& execution) {
  if (input_blocks(X) != nullptr)
    return std::make_unique<BlockLinear<T>>(InputRows{X, {}}, variance, FeatureOrder::given, execution);
  return make_matrix_linear<T>(InputRows{X, {}}, variance, FeatureOrder::given, execution);
}

template <class T>
std::unique_ptr<Linear<T>> make_matrix_linear(InputRows rows, double variance, FeatureOrder order,
                                              const Execution& execution) {
  if (is_sparse(rows.X)) return std::make_unique<SparseLinear<T>>(std::move(rows), variance, order, execution);
  return std::make_unique<DenseLinear<T>>(std::move(rows), variance, execution);
}

#define TAXOLEARN_INSTANTIATE(T)                                                                                  \
  template class Linear<T>;                                                                                       \
  template std::unique_ptr<Linear<T>> make_matrix_linear(InputRows, double, FeatureOrder, const Execution&);      \
  template std::unique_ptr<Operator<T>> make_linear(const InputView&, double, LinearAlgorithm, const Execution&); \
  template std::unique_ptr<FeatureOperator<T>> make_linear_features(const InputView&, double, const Execution&);
TAXOLEARN_INSTANTIATE(float)
TAXOLEARN_INSTANTIATE(double)
#undef TAXOLEARN_INSTANTIATE

}  // namespace taxolearn
