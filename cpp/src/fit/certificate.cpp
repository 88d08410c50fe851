#include "taxolearn/fit/certificate.hpp"

#include <cmath>
#include <limits>
#include <numeric>

#include "predictor_space.hpp"
#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/fit/kernel_product.hpp"
#include "taxolearn/fit/predict.hpp"
#include "taxolearn/operators/block_sum.hpp"
#include "taxolearn/operators/linear.hpp"

namespace taxolearn {
namespace {

/// out = X^T S, d x C.
void project(const InputView& X, const Matrix<double>& S, DenseView<double> out, const Execution& execution) {
  if (const auto* const blocks = input_blocks(X)) {
    for (const InputBlock& each : *blocks) {
      const DenseView<double> own = row_block(out, each.first, input_features(each.X));
      project(each.X, S, own, execution);
      for_row_blocks(own.rows, own.cols, execution,
                     [&](Index first, Index count) { Array(own.row(first), count * own.cols) *= each.factor; });
    }
  } else if (is_sparse(X)) {
    project_sparse(X, S.view(), out, execution);
  } else {
    project_dense(X, S.view(), out, execution);
  }
}

Matrix<double> project(const InputView& X, const Matrix<double>& S, const Execution& execution) {
  auto out = Matrix<double>::uninitialised(input_features(X), S.cols());
  project(X, S, out.view(), execution);
  return out;
}

void scale(double factor, Matrix<double>& matrix, const Execution& execution) {
  for_row_blocks(matrix.rows(), matrix.cols(), execution,
                 [&](Index first, Index count) { Array(matrix.row(first), count * matrix.cols()) *= factor; });
}

/// S G, in a new matrix; S itself where there is no coupling.
const Matrix<double>& coupled(const Problem& problem, const Matrix<double>& S, Matrix<double>& storage,
                              const Execution& execution) {
  if (problem.prior.coupling == nullptr) return S;
  storage = S;
  for_coupled_blocks(S.rows(), S.cols(), execution,
                     [&](Index first, Index count) { problem.prior.coupling->apply(count, storage.row(first)); });
  return storage;
}

/// Predictors of the result's weights.
Matrix<double> predictors(const Problem& problem, const FitResult& result, const Execution& execution) {
  Matrix<double> u(input_rows(problem.X), result.weights.cols());
  predict(problem.X, result.weights.view(), result.intercepts.data(), problem.likelihood->link(), Output::predictor,
          u.view(), execution);
  return u;
}

/// Replaces predictors by residuals; returns the loss.
double to_residual(const Problem& problem, Matrix<double>& u, const Execution& execution) {
  return parallel_sum<double>(row_blocks(u.rows(), u.cols()), execution, [&](Index first, Index count) {
    return problem.likelihood->residual(first, count, u.row(first));
  });
}

void set_gap(FitResult& result, double objective, double gap) {
  result.objective = objective;
  result.gap = gap;
  if (gap == 0.0) {
    result.relative_gap = 0.0;  // even where the objective is zero: one class, or no weight on any row
  } else if (gap < 0.0) {
    // Rounding, or the kernel is not positive semidefinite and nothing is certified: its size distinguishes the two.
    result.relative_gap = std::abs(gap) / std::abs(objective);
  } else {
    result.relative_gap = objective > 0.0 ? gap / objective : std::numeric_limits<double>::infinity();
  }
}

/// Weights of the features of the linear blocks of a kernel, for coefficients (n x functions).
Matrix<double> weights_of_linear_blocks(const Kernel& kernel, const InputView& X, DenseView<const double> coefficients,
                                        const Execution& execution) {
  const InputView linear = linear_blocks(kernel, X);
  Matrix<double> S(coefficients.rows, coefficients.cols);
  copy(coefficients, S.view());
  Matrix<double> out = project(linear, S, execution);
  auto block = input_blocks(linear)->begin();
  for (const auto& part : kernel.block_parts()) {
    const std::optional<double> variance = part->linear_variance();
    if (!variance.has_value()) continue;
    Array(out.row(block->first), input_features(block->X) * out.cols()) *= *variance;
    ++block;
  }
  return out;
}

/// The expansions that predict, of every kernel.
std::vector<Expansion> expand(const Problem& problem, const Matrix<double>& alpha, const Execution& execution) {
  const bool own = !problem.prior.kernel_of.empty();
  const KernelColumns columns(problem.prior.kernel_of, problem.prior.kernels->count());
  Matrix<double> storage;
  if (own) {
    storage = Matrix<double>(alpha.rows(), columns.size());
    for_row_blocks(alpha.rows(), columns.size(), execution, [&](Index first, Index count) {
      to_kernel_columns(problem.prior.coupling, columns, count, alpha.row(first), storage.row(first));
    });
  }
  const Matrix<double>& functions = own ? storage : coupled(problem, alpha, storage, execution);
  const auto& factors = problem.prior.kernels->factors(execution);
  std::vector<Expansion> out(static_cast<std::size_t>(problem.prior.kernels->count()));
  for (std::size_t l = 0; l < out.size(); ++l) {
    const Index begin = own ? columns.begin[l] : 0;
    const Index count = own ? columns.begin[l + 1] - begin : functions.cols();
    const DenseView<const double> part(functions.data() + begin, functions.rows(), count, functions.cols());
    if (!factors.empty()) {
      out[l].basis = factors[l]->pivots;
      out[l].coefficients = basis_coefficients(*factors[l], part);
      const Kernel& kernel = *problem.prior.kernels->kernels()[l];
      if (is_partly_linear(kernel)) out[l].weights = weights_of_linear_blocks(kernel, problem.X, part, execution);
      continue;
    }
    out[l].coefficients = Matrix<double>(part.rows, part.cols);
    for (Index i = 0; i < part.rows; ++i) std::copy(part.row(i), part.row(i) + count, out[l].coefficients.row(i));
  }
  return out;
}

void certify_with_kernels(const Problem& problem, const Matrix<double>& alpha, FitResult& result,
                          const Execution& execution) {
  result.intercepts.assign(static_cast<std::size_t>(alpha.cols()), 0.0);
  column_sums(alpha.view(), result.intercepts.data(), execution);
  for (double& value : result.intercepts) value *= problem.prior.intercept_variance;
  result.expansions = expand(problem, alpha, execution);
  result.ranks.clear();
  for (const auto& factor : problem.prior.kernels->factors(execution)) result.ranks.push_back(factor->L.cols());

  std::vector<Operator<double>*> operators;
  for (const auto& each : problem.prior.kernels->certifying_operators(execution)) operators.push_back(each.get());
  KernelProduct<double> product(problem, std::move(operators));
  Matrix<double> gradient(alpha.rows(), alpha.cols());
  product.apply(alpha.data(), gradient.data(), execution);
  const double square = dot(alpha.data(), gradient.data(), alpha.size(), execution);
  const double loss = to_residual(problem, gradient, execution);
  axpy(1.0, alpha.data(), gradient.data(), alpha.size(), execution);
  Matrix<double> image(alpha.rows(), alpha.cols());
  product.apply(gradient.data(), image.data(), execution);
  const double gradient_square = dot(gradient.data(), image.data(), alpha.size(), execution);
  result.products += 2;
  set_gap(result, loss + 0.5 * square, 0.5 * gradient_square);
}

/// p . p G for a row p (C), which is overwritten.
double coupled_square(const Coupling* coupling, Index classes, double* p) {
  if (coupling == nullptr) return dot_block(p, p, classes);
  const std::vector<double> before(p, p + classes);
  coupling->apply(1, p);
  return dot_block(before.data(), p, classes);
}

/// The sum over the features of p . p G, with p the rows of X^T g, of which there is a part at a time.
double squared_projection(const InputView& X, const Coupling* coupling, const Matrix<double>& g,
                          const Execution& execution) {
  if (const auto* const blocks = input_blocks(X)) {
    double sum = 0.0;
    for (const InputBlock& each : *blocks)
      sum += each.factor * each.factor * squared_projection(each.X, coupling, g, execution);
    return sum;
  }
  std::vector<double> squares(static_cast<std::size_t>(input_features(X)));  // of each feature
  const auto set_squares = [&](Index first, DenseView<double> part) {
    for (Index j = 0; j < part.rows; ++j)
      squares[static_cast<std::size_t>(first + j)] = coupled_square(coupling, g.cols(), part.row(j));
  };
  if (is_sparse(X)) {
    project_sparse(X, g.view(), set_squares, execution);
  } else {
    Matrix<double> all = project(X, g, execution);
    set_squares(0, all.view());
  }
  return std::accumulate(squares.begin(), squares.end(), 0.0);
}

/// g . K g of the linear kernel.
double squared_norm(const Problem& problem, const Matrix<double>& g, const Execution& execution) {
  const Index classes = g.cols();
  std::vector<double> sums(static_cast<std::size_t>(classes));
  column_sums(g.view(), sums.data(), execution);
  return problem.prior.variance * squared_projection(problem.X, problem.prior.coupling, g, execution) +
         problem.prior.intercept_variance * dot_block(sums.data(), sums.data(), classes);
}

}  // namespace

void certify(const Problem& problem, const Matrix<double>& alpha, FitResult& result, const Execution& execution) {
  if (problem.prior.kernels != nullptr) {
    certify_with_kernels(problem, alpha, result, execution);
    return;
  }
  result.intercepts.assign(static_cast<std::size_t>(alpha.cols()), 0.0);
  column_sums(alpha.view(), result.intercepts.data(), execution);
  for (double& value : result.intercepts) value *= problem.prior.intercept_variance;
  {
    Matrix<double> storage;
    Matrix<double> scaled = coupled(problem, alpha, storage, execution);
    scale(problem.prior.variance, scaled, execution);
    result.weights = project(problem.X, scaled, execution);
  }
  Matrix<double> gradient = predictors(problem, result, execution);
  const double square = dot(alpha.data(), gradient.data(), alpha.size(), execution);
  const double loss = to_residual(problem, gradient, execution);
  axpy(1.0, alpha.data(), gradient.data(), alpha.size(), execution);
  result.products += 2;
  set_gap(result, loss + 0.5 * square, 0.5 * squared_norm(problem, gradient, execution));
}

void certify(const Problem& problem, const Buffer<double>& point, FitResult& result, const Execution& execution) {
  const Index classes = problem.likelihood->outputs();
  const Index d = input_features(problem.X);
  const Index factors = factor_count(problem);
  const double root = std::sqrt(problem.prior.variance);
  const double sigma = std::sqrt(problem.prior.intercept_variance);
  const double* const b = point.data() + d * factors;
  result.weights = Matrix<double>(d, classes);
  result.intercepts.resize(static_cast<std::size_t>(classes));
  for (Index c = 0; c < classes; ++c) result.intercepts[static_cast<std::size_t>(c)] = sigma * b[c];
  for_coupled_blocks(d, factors, execution, [&](Index first, Index count) {
    double* const to = result.weights.row(first);
    const double* const from = point.data() + first * factors;
    if (problem.prior.coupling == nullptr) {
      std::copy(from, from + count * factors, to);
    } else {
      problem.prior.coupling->from_factors(count, from, to);
    }
    Array(to, count * classes) *= root;
  });

  Matrix<double> residual = predictors(problem, result, execution);
  const double loss = to_residual(problem, residual, execution);
  Matrix<double> sums = project(problem.X, residual, execution);
  scale(root, sums, execution);
  // |W + Z^T r R|^2
  double gradient_square = parallel_sum<double>(row_blocks(d, factors), execution, [&](Index first, Index count) {
    thread_local Buffer<double> block;
    block.resize(static_cast<std::size_t>(count * factors));
    const double* step = sums.row(first);
    if (problem.prior.coupling != nullptr) {
      problem.prior.coupling->to_factors(count, step, block.data());
      step = block.data();
    }
    const double* const weights = point.data() + first * factors;
    double sum = 0.0;
    for (Index k = 0; k < count * factors; ++k) {
      const double value = weights[k] + step[k];
      sum += value * value;
    }
    return sum;
  });
  std::vector<double> residual_sums(static_cast<std::size_t>(classes));
  column_sums<double>(residual.view(), residual_sums.data(), execution);
  for (Index c = 0; c < classes; ++c) {
    const double value = b[c] + sigma * residual_sums[static_cast<std::size_t>(c)];
    gradient_square += value * value;
  }
  ++result.products;
  const double square = dot(point.data(), point.data(), static_cast<Index>(point.size()), execution);
  set_gap(result, loss + 0.5 * square, 0.5 * gradient_square);
}

Buffer<double> weights_of(const Problem& problem, const Matrix<double>& alpha, const Execution& execution) {
  const Index d = input_features(problem.X);
  const Index factors = factor_count(problem);
  Matrix<double> sums = project(problem.X, alpha, execution);
  scale(std::sqrt(problem.prior.variance), sums, execution);
  Buffer<double> point(static_cast<std::size_t>(d * factors + alpha.cols()));
  for_coupled_blocks(d, factors, execution, [&](Index first, Index count) {
    double* const to = point.data() + first * factors;
    if (problem.prior.coupling == nullptr) {
      std::copy(sums.row(first), sums.row(first) + count * factors, to);
    } else {
      problem.prior.coupling->to_factors(count, sums.row(first), to);
    }
  });
  double* const b = point.data() + d * factors;
  column_sums(alpha.view(), b, execution);
  for (Index c = 0; c < alpha.cols(); ++c) b[c] *= std::sqrt(problem.prior.intercept_variance);
  return point;
}

}  // namespace taxolearn
