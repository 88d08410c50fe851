#include "taxolearn/klr/certificate.hpp"

#include <cmath>
#include <limits>

#include "predictor_space.hpp"

namespace taxolearn {
namespace {

constexpr Index rows_per_chunk = 2048;
constexpr Index columns_at_once = 8;  // on any number of threads: the last bits of a matrix product depend on it

/// body(first column, X^T S for some columns) over blocks of columns of S, in parallel; returns the sum of what the
/// body returns.
template <class Body>
double project_blocks(const InputView& X, const Matrix<double>& S, const Execution& execution, const Body& body) {
  const Blocks columns(S.cols(), columns_at_once);
  return parallel_sum<double>(columns, execution, [&](Index column, Index count) {
    Matrix<double> part(input_features(X), count);
    for (Index first = 0; first < S.rows(); first += rows_per_chunk) {
      const Index rows = std::min(rows_per_chunk, S.rows() - first);
      project_columns(X, first, DenseView<const double>(S.row(first) + column, rows, count, S.cols()), 0, count,
                      part.view());
    }
    return body(column, part);
  });
}

}  // namespace

void recover_weights(const Problem& problem, const Matrix<double>& alpha, Matrix<double>& coef,
                     std::vector<double>& intercepts, const Execution& execution) {
  coef = Matrix<double>(input_features(problem.X), alpha.cols());
  intercepts.assign(static_cast<std::size_t>(alpha.cols()), 0.0);
  project_blocks(problem.X, alpha, execution, [&](Index column, const Matrix<double>& part) {
    for (Index j = 0; j < part.rows(); ++j) {
      double* const to = coef.row(j) + column;
      for (Index c = 0; c < part.cols(); ++c) to[c] = problem.variance * part.row(j)[c];
    }
    return 0.0;
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
  double gradient_square =
      project_blocks(problem.X, residual, execution, [&](Index column, const Matrix<double>& part) {
        double sum = 0.0;
        for (Index j = 0; j < part.rows(); ++j) {
          const double* const weights = coef.row(j) + column;
          for (Index c = 0; c < part.cols(); ++c) {
            const double value = weights[c] + variance * part.row(j)[c];
            sum += value * value;
          }
        }
        return sum / variance;
      });
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
  if (result.gap == 0.0) {
    result.relative_gap = 0.0;  // even where the objective is zero: one class, or no weight on any row
  } else {
    result.relative_gap =
        result.objective > 0.0 ? result.gap / result.objective : std::numeric_limits<double>::infinity();
  }
}

}  // namespace taxolearn
