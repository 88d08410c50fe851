#include "taxolearn/klr/certificate.hpp"

#include <cmath>
#include <limits>

#include "predictor_space.hpp"

namespace taxolearn {
namespace {

constexpr Index rows_per_chunk = 2048;
constexpr Index columns_at_once = 16;

/// Columns are projected independently of each other, so how many go together does not change the sums.
Blocks column_blocks(Index classes, const Execution& execution) {
  return Blocks(classes, std::min(columns_at_once, (classes + execution.threads - 1) / execution.threads));
}

/// W += X^T S for the columns of S and W (n x m, d x m).
void project(const InputView& X, DenseView<const double> S, DenseView<double> W) {
  for (Index first = 0; first < S.rows; first += rows_per_chunk) {
    const DenseView<const double> chunk(S.row(first), std::min(rows_per_chunk, S.rows - first), S.cols, S.stride);
    project_columns(X, first, chunk, 0, S.cols, W);
  }
}

}  // namespace

void recover_weights(const Problem& problem, const Matrix<double>& alpha, Matrix<double>& coef,
                     std::vector<double>& intercepts, const Execution& execution) {
  coef = Matrix<double>(input_features(problem.X), alpha.cols());
  intercepts.assign(static_cast<std::size_t>(alpha.cols()), 0.0);
  const Blocks columns = column_blocks(alpha.cols(), execution);
  parallel_for(columns.number(), execution, [&](Index block) {
    const Index column = columns.first(block);
    const Index count = columns.length(block);
    project(problem.X, DenseView<const double>(alpha.data() + column, alpha.rows(), count, alpha.cols()),
            DenseView<double>(coef.data() + column, coef.rows(), count, coef.cols()));
  });
  const Blocks blocks(coef.size(), vector_block);
  parallel_for(blocks.number(), execution, [&](Index block) {
    Array(coef.data() + blocks.first(block), blocks.length(block)) *= problem.variance;
  });
  column_sums(alpha.view(), intercepts.data(), execution);
  for (double& value : intercepts) value *= problem.sigma2;
}

void certify(const Problem& problem, Result& result, const Execution& execution) {
  const Matrix<double>& coef = result.weights;
  const Index n = input_rows(problem.X);
  const Index classes = coef.cols();
  const double variance = problem.variance;
  const double sigma2 = problem.sigma2;

  Matrix<double> residual(n, classes);
  predict(problem.X, coef.view(), result.intercepts.data(), Output::predictor, residual.view(), execution);
  const double loss = parallel_sum<double>(row_blocks(n, classes), execution, [&](Index first, Index count) {
    return problem.likelihood->residual(first, count, residual.row(first));
  });

  // |W|^2 and |W + Z^T r|^2 in the scale of coef = sqrt(variance) W and of the intercepts, sigma W.
  const Blocks columns = column_blocks(classes, execution);
  std::vector<double> squares(static_cast<std::size_t>(columns.number()));
  parallel_for(columns.number(), execution, [&](Index block) {
    const Index column = columns.first(block);
    const Index count = columns.length(block);
    Matrix<double> gradient(coef.rows(), count);
    project(problem.X, DenseView<const double>(residual.data() + column, n, count, classes), gradient.view());
    double sum = 0.0;
    for (Index j = 0; j < coef.rows(); ++j) {
      sum +=
          (variance * Array(gradient.row(j), count) + ConstArray<double>(coef.row(j) + column, count)).square().sum();
    }
    squares[static_cast<std::size_t>(block)] = sum / variance;
  });
  double gradient_square = 0.0;
  for (const double square : squares) gradient_square += square;
  double square = dot(coef.data(), coef.data(), coef.size(), execution) / variance;
  if (sigma2 > 0.0) {
    std::vector<double> sums(static_cast<std::size_t>(classes));
    column_sums<double>(residual.view(), sums.data(), execution);
    for (std::size_t c = 0; c < sums.size(); ++c) {
      const double b = result.intercepts[c];
      square += b * b / sigma2;
      gradient_square += (b + sigma2 * sums[c]) * (b + sigma2 * sums[c]) / sigma2;
    }
  }
  result.objective = loss + 0.5 * square;
  result.gap = 0.5 * gradient_square;
  result.relative_gap =
      result.objective > 0.0 ? result.gap / result.objective : std::numeric_limits<double>::infinity();
}

}  // namespace taxolearn
