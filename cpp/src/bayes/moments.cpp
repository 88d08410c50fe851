#include "taxolearn/bayes/moments.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/base/vector.hpp"
#include "taxolearn/bayes/tree_weights.hpp"
#include "taxolearn/data/parts.hpp"

namespace taxolearn {
namespace {

constexpr Index rows_per_block = 64;
constexpr Index parts_of_features = 32;

/// X with all entries squared.
class Squared {
 public:
  explicit Squared(const InputView& X) {
    require(input_blocks(X) == nullptr, "X has blocks, expected one matrix");
    view_ = std::visit([this](const auto& x) -> InputView { return of(x); }, X);
  }

  const InputView& view() const { return view_; }

 private:
  template <class V, class I>
  InputView of(const SparseView<V, I>& X) {
    const Index begin = X.rows > 0 ? static_cast<Index>(X.offsets[0]) : 0;
    auto& values = memory<V>();
    values.resize(static_cast<std::size_t>(begin + X.nonzeros()));
    for (Index k = begin; k < begin + X.nonzeros(); ++k)
      values[static_cast<std::size_t>(k)] = X.values[k] * X.values[k];
    SparseView<V, I> out = X;
    out.values = values.data();
    return out;
  }

  template <class V>
  InputView of(const DenseView<const V>& X) {
    auto& values = memory<V>();
    values.resize(static_cast<std::size_t>(X.rows * X.cols));
    for (Index i = 0; i < X.rows; ++i)
      std::transform(X.row(i), X.row(i) + X.cols, values.begin() + i * X.cols, [](V x) { return x * x; });
    return DenseView<const V>(values.data(), X.rows, X.cols);
  }

  InputView of(const BlockedView& X) { return X; }

  template <class V>
  Buffer<V>& memory() {
    if constexpr (std::is_same_v<V, float>) {
      return singles_;
    } else {
      return doubles_;
    }
  }

  Buffer<float> singles_;
  Buffer<double> doubles_;
  InputView view_;
};

/// take(first feature, rows of (X o X)^T S) for parts of the features that depend on their number only.
template <class Take>
void project_squares(const InputView& X, const Matrix<double>& S, const Take& take, const Execution& execution) {
  const Squared squared(X);
  const Index size = std::max<Index>(1, (input_features(X) + parts_of_features - 1) / parts_of_features);
  project_parts(squared.view(), S.view(), size, take, execution);
}

/// Turns probabilities into w p (1 - p).
void to_curvature(const double* row_weights, Index first, Index count, Index classes, double* p) {
  for (Index i = 0; i < count; ++i) {
    const double weight = row_weights == nullptr ? 1.0 : row_weights[first + i];
    double* const row = p + i * classes;
    for (Index c = 0; c < classes; ++c) row[c] *= weight * (1.0 - row[c]);
  }
}

/// w p (1 - p) of all rows and classes, at these weights.
Matrix<double> curvatures(const InputView& X, const FittedWeights& fitted, const double* row_weights,
                          const Execution& execution) {
  const Index classes = fitted.weights.cols;
  auto out = Matrix<double>::uninitialised(input_rows(X), classes);
  const Blocks blocks(out.rows(), rows_per_block);
  parallel_for(blocks.number(), execution, [&](Index block) {
    const Index first = blocks.first(block), count = blocks.length(block);
    const DenseView<double> part(out.row(first), count, classes);
    expand_rows(X, first, fitted.weights, part);
    for (Index i = 0; i < count; ++i) axpy_block(1.0, fitted.intercepts, part.row(i), classes);
    apply_link(fitted.link, Output::probability, count, classes, part.data);
    to_curvature(row_weights, first, count, classes, part.data);
  });
  return out;
}

void check(const MomentsProblem& problem) {
  const Index d = input_features(problem.X);
  require(problem.taxonomy != nullptr, "there is no taxonomy");
  require_shape("weights", problem.fitted.weights, d, problem.taxonomy->classes());
  require(static_cast<Index>(problem.groups.size()) == problem.taxonomy->nodes(), "groups has ", problem.groups.size(),
          " elements, expected ", problem.taxonomy->nodes());
  const DenseView<const double>& v = problem.variances;
  require(v.rows == 1 || v.rows == d, "variances has ", v.rows, " rows, expected 1 or ", d);
  for (std::size_t n = 1; n < problem.groups.size(); ++n)
    require(problem.groups[n] >= 0 && problem.groups[n] < v.cols, "groups has ", problem.groups[n],
            ", expected numbers from 0 to below ", v.cols);
  for (Index j = 0; j < v.rows; ++j) {
    for (Index g = 0; g < v.cols; ++g)
      require(v.row(j)[g] > 0.0 && std::isfinite(v.row(j)[g]), "variances has ", v.row(j)[g],
              ", expected positive finite numbers");
  }
  require(problem.intercept_variance >= 0.0, "intercept_variance is ", problem.intercept_variance,
          ", expected at least 0");
}

/// What a part of the features adds to sums over all of them.
struct GroupSums {
  std::vector<double> squares, spreads;
};

}  // namespace

WeightMoments weight_moments(const MomentsProblem& problem, bool with_variances, const Execution& execution) {
  check(problem);
  const Taxonomy& tree = *problem.taxonomy;
  const Index d = input_features(problem.X), classes = tree.classes(), nodes = tree.nodes();
  const Index groups = problem.variances.cols;
  const bool by_feature = problem.variances.rows > 1 || d == 1;
  WeightMoments out;
  out.squares = Matrix<double>(problem.variances.rows, groups);
  out.spreads = Matrix<double>(problem.variances.rows, groups);
  if (with_variances) out.variances = Matrix<double>(d, classes);
  const Matrix<double> S = curvatures(problem.X, problem.fitted, problem.row_weights, execution);
  out.intercept_variances.assign(static_cast<std::size_t>(classes), 0.0);
  column_sums(S.view(), out.intercept_variances.data(), execution);
  for (double& value : out.intercept_variances)
    value = problem.intercept_variance / (1.0 + problem.intercept_variance * value);

  const Index size = std::max<Index>(1, (d + parts_of_features - 1) / parts_of_features);
  std::vector<GroupSums> parts(static_cast<std::size_t>((d + size - 1) / size));
  project_squares(
      problem.X, S,
      [&](Index first, DenseView<double> h) {
        GroupSums& sums = parts[static_cast<std::size_t>(first / size)];
        const auto zeros = static_cast<std::size_t>(by_feature ? 0 : groups);
        sums.squares.assign(zeros, 0.0);
        sums.spreads.assign(zeros, 0.0);
        TreeWeights weights(tree);
        std::vector<double> v(static_cast<std::size_t>(nodes), 1.0), increments(v), spreads(v), variances(v);
        for (Index j = 0; j < h.rows; ++j) {
          const double* const own = problem.variances.row(problem.variances.rows > 1 ? first + j : 0);
          for (Index n = 1; n < nodes; ++n)
            v[static_cast<std::size_t>(n)] = own[problem.groups[static_cast<std::size_t>(n)]];
          weights.increments(v.data(), problem.fitted.weights.row(first + j), increments.data());
          weights.posterior_variances(v.data(), h.row(j), spreads.data(), variances.data());
          double* const to_squares = by_feature ? out.squares.row(first + j) : sums.squares.data();
          double* const to_spreads = by_feature ? out.spreads.row(first + j) : sums.spreads.data();
          for (std::size_t n = 1; n < static_cast<std::size_t>(nodes); ++n) {
            to_squares[problem.groups[n]] += increments[n] * increments[n];
            to_spreads[problem.groups[n]] += spreads[n];
          }
          if (with_variances)
            std::copy(variances.data() + tree.inner(), variances.data() + nodes, out.variances.row(first + j));
        }
      },
      execution);
  for (const GroupSums& part : parts) {
    for (std::size_t g = 0; g < part.squares.size(); ++g) {
      out.squares.row(0)[g] += part.squares[g];
      out.spreads.row(0)[g] += part.spreads[g];
    }
  }
  return out;
}

void observed_information(const InputView& X, const FittedWeights& fitted, const double* row_weights,
                          DenseView<double> out, const Execution& execution) {
  require_shape("weights", fitted.weights, input_features(X), out.cols);
  require_shape("out", out, input_features(X), fitted.weights.cols);
  project_squares(
      X, curvatures(X, fitted, row_weights, execution),
      [&](Index first, DenseView<double> h) { copy(h, row_block(out, first, h.rows)); }, execution);
}

}  // namespace taxolearn
