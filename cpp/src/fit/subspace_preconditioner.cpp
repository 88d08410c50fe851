#include "taxolearn/fit/subspace_preconditioner.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "predictor_space.hpp"
#include "taxolearn/base/eigenvectors.hpp"
#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/base/product.hpp"
#include "taxolearn/base/triangular.hpp"

namespace taxolearn {
namespace {

constexpr Index most_columns = 64;        // of all narrow blocks
constexpr double least_share = 0.05;      // of the mean squared norm of the other blocks, for directions that stand out
constexpr Index most_unknowns = 2000;     // of the system: its Cholesky factorization takes a fraction of a second
constexpr double rows_per_unknown = 4.0;  // that the Hessian is taken from
constexpr double most_work = 30.0;        // of a renewal, relative to a product, whose flops take ten times as long
constexpr Index rows_together = 1024;
constexpr Index parts_wanted = 16;  // enough to keep the threads busy

bool is_narrow(const InputBlock& block) {
  return !is_sparse(block.X) && input_features(block.X) > 0 && input_features(block.X) <= most_columns;
}

Index narrow_features(const std::vector<InputBlock>& blocks) {
  Index columns = 0;
  for (const InputBlock& block : blocks) columns += is_narrow(block) ? input_features(block.X) : 0;
  return columns;
}

/// Rows that the Hessian is taken from.
Index rows_taken(Index rows, Index unknowns) {
  return std::min(rows, static_cast<Index>(rows_per_unknown * static_cast<double>(unknowns)));
}

/// The columns of the narrow blocks at the given rows, times the factors of the blocks.
Matrix<double> narrow_columns(const std::vector<InputBlock>& blocks, const std::vector<Index>& rows, Index columns) {
  Matrix<double> out(static_cast<Index>(rows.size()), columns);
  Index first = 0;
  for (const InputBlock& block : blocks) {
    if (!is_narrow(block)) continue;
    const auto take = [&](const auto& X) {
      for (Index i = 0; i < out.rows(); ++i) {
        for (Index j = 0; j < X.cols; ++j)
          out.row(i)[first + j] = block.factor * static_cast<double>(X.row(rows[static_cast<std::size_t>(i)])[j]);
      }
    };
    if (const auto* X = std::get_if<DenseView<const float>>(&block.X)) take(*X);
    if (const auto* Y = std::get_if<DenseView<const double>>(&block.X)) take(*Y);
    first += input_features(block.X);
  }
  return out;
}

/// The mean over all rows of the squared norm in the blocks that are not narrow.
double other_square(const std::vector<InputBlock>& blocks, Index rows) {
  std::vector<double> norms(static_cast<std::size_t>(rows));
  double sum = 0.0;
  for (const InputBlock& block : blocks) {
    if (is_narrow(block)) continue;
    squared_norms(block.X, norms.data());
    for (const double norm : norms) sum += block.factor * block.factor * norm;
  }
  return sum / static_cast<double>(rows);
}

/// Whether rows have any curvature: those that are held out have none.
std::vector<bool> have_curvature(const Likelihood& likelihood) {
  std::vector<bool> out;
  std::vector<double> u(static_cast<std::size_t>(likelihood.outputs())), diagonal(u.size());
  for (Index i = 0; i < likelihood.rows(); ++i) {
    std::fill(u.begin(), u.end(), 0.0);
    likelihood.curvature(i, 1, u.data());
    likelihood.hessian_diagonal(i, 1, u.data(), diagonal.data());
    out.push_back(std::any_of(diagonal.begin(), diagonal.end(), [](double value) { return value > 0.0; }));
  }
  return out;
}

/// Makes the columns sum to zero over the rows that are used, and zero elsewhere. Returns how many are used.
Index center(const std::vector<bool>& used, Matrix<double>& columns) {
  std::vector<double> mean(static_cast<std::size_t>(columns.cols()), 0.0);
  const Index count = std::count(used.begin(), used.end(), true);
  for (Index i = 0; i < columns.rows(); ++i)
    if (used[static_cast<std::size_t>(i)]) axpy_block(1.0, columns.row(i), mean.data(), columns.cols());
  for (double& value : mean) value /= static_cast<double>(std::max<Index>(count, 1));
  for (Index i = 0; i < columns.rows(); ++i) {
    const bool is_used = used[static_cast<std::size_t>(i)];
    for (Index j = 0; j < columns.cols(); ++j)
      columns.row(i)[j] = is_used ? columns.row(i)[j] - mean[static_cast<std::size_t>(j)] : 0.0;
  }
  return count;
}

}  // namespace

bool may_have_subspace_preconditioner(const Problem& problem) {
  const std::vector<InputBlock>* const blocks = input_blocks(problem.X);
  if (blocks == nullptr || problem.prior.kernels != nullptr) return false;
  const Index columns = narrow_features(*blocks);
  return columns > 0 && columns <= most_columns && problem.likelihood->hessian_structure() != HessianStructure::general;
}

template <class T>
std::unique_ptr<SubspacePreconditioner<T>> SubspacePreconditioner<T>::make(const Problem& problem,
                                                                           const std::vector<Index>& rows,
                                                                           const Execution& execution) {
  const std::vector<InputBlock>* const blocks = input_blocks(problem.X);
  const Likelihood& likelihood = *problem.likelihood;
  const Index n = likelihood.rows();
  if (!may_have_subspace_preconditioner(problem) || n < 2) return nullptr;
  const Index columns = narrow_features(*blocks);
  std::vector<Index> all = rows;
  for (Index i = 0; rows.empty() && i < n; ++i) all.push_back(i);

  Matrix<double> values = narrow_columns(*blocks, all, columns);
  const Index used = center(have_curvature(likelihood), values);
  if (used == 0) return nullptr;
  Matrix<double> axes(columns, columns);
  set_product(Product::AtB, values.view(), values.view(), axes.view(), 1.0 / static_cast<double>(used));
  const std::vector<double> variances = symmetric_eigenvectors(axes.view());  // from the smallest on
  const double least = least_share * other_square(*blocks, input_rows(problem.X));
  if (!std::isfinite(variances.back()) || !(least > 0.0)) return nullptr;
  const Index directions = variances.end() - std::upper_bound(variances.begin(), variances.end(), least);
  const Index unknowns = directions * std::max(likelihood.outputs(), factor_count(problem));
  if (directions == 0 || unknowns > most_unknowns) return nullptr;
  const double product = 4.0 * static_cast<double>(input_entries(problem.X)) * static_cast<double>(n) /
                         static_cast<double>(input_rows(problem.X)) * static_cast<double>(likelihood.outputs());
  const double size = static_cast<double>(directions * likelihood.outputs());
  if (static_cast<double>(rows_taken(n, unknowns)) * size * size > most_work * product) return nullptr;

  Matrix<double> leading(n, directions);
  set_product(Product::AB, values.view(), block(axes.view(), 0, columns, columns - directions, directions),
              leading.view());
  return std::unique_ptr<SubspacePreconditioner>(
      new SubspacePreconditioner(problem, std::move(leading), problem.prior.variance * least, execution));
}

template <class T>
SubspacePreconditioner<T>::SubspacePreconditioner(const Problem& problem, Matrix<double> values, double other_variance,
                                                  const Execution& execution)
    : problem_(problem), execution_(execution), other_variance_(other_variance), values_(std::move(values)) {}

template <class T>
void SubspacePreconditioner<T>::renew(const Matrix<double>& u, Operator<T>& kernel) {
  if (images_.size() == 0) normalize(kernel);
  set_hessian(u);
  factorize();
}

template <class T>
void SubspacePreconditioner<T>::normalize(Operator<T>& kernel) {
  const Index n = values_.rows();
  const Index q = values_.cols();
  Matrix<T> from(n, q), to(n, q);
  convert(values_.data(), from.data(), values_.size(), execution_);
  kernel.apply(static_cast<const Matrix<T>&>(from).view(), to.view(), nullptr, execution_);
  convert(from.data(), values_.data(), values_.size(), execution_);  // as the product saw them
  images_ = Matrix<double>(n, q);
  convert(to.data(), images_.data(), images_.size(), execution_);
  Matrix<double> square(q, q);
  set_product(Product::AtB, values_.view(), images_.view(), square.view());
  if (!factor_cholesky(square.view())) {  // V is too close to a smaller rank: no directions
    std::fill(values_.data(), values_.data() + values_.size(), 0.0);
    std::fill(images_.data(), images_.data() + images_.size(), 0.0);
    return;
  }
  solve_lower_transposed_right(square.view(), values_.view());
  solve_lower_transposed_right(square.view(), images_.view());
}

template <class T>
void SubspacePreconditioner<T>::set_hessian(const Matrix<double>& u) {
  const Likelihood& likelihood = *problem_.likelihood;
  const bool has_rank_one = likelihood.hessian_structure() == HessianStructure::diagonal_minus_rank_one;
  const Index n = u.rows();
  const Index classes = u.cols();
  const Index q = directions();
  const Index taken = rows_taken(n, q * std::max(classes, factor_count(problem_)));
  hessian_ = Matrix<double>(q * classes, q * classes);
  std::vector<double> curvatures(static_cast<std::size_t>(classes), 0.0), coupled(curvatures.size(), 1.0);
  Matrix<double> diagonals(std::min(taken, rows_together), classes), state(diagonals.rows(), classes);
  Matrix<double> roots(diagonals.rows(), q * classes);
  const Blocks blocks(taken, rows_together);
  for (Index part = 0; part < blocks.number(); ++part) {
    const Index count = blocks.length(part);
    const auto row = [&](Index k) { return n * (blocks.first(part) + k) / taken; };
    parallel_for(count, execution_, [&](Index k) {
      std::copy(u.row(row(k)), u.row(row(k)) + classes, state.row(k));
      likelihood.curvature(row(k), 1, state.row(k));
      likelihood.hessian_diagonal(row(k), 1, state.row(k), diagonals.row(k));
      double sum = 0.0;
      for (Index c = 0; c < classes; ++c) sum += diagonals.row(k)[c];
      const double scale = sum > 0.0 ? 1.0 / std::sqrt(sum) : 0.0;
      for (Index j = 0; j < q; ++j) {
        const double value = scale * images_.row(row(k))[j];
        for (Index c = 0; c < classes; ++c) roots.row(k)[j * classes + c] = value * diagonals.row(k)[c];
      }
    });
    for (Index k = 0; k < count; ++k) {
      double sum = 0.0;
      for (Index c = 0; c < classes; ++c) sum += diagonals.row(k)[c];
      for (Index c = 0; c < classes && sum > 0.0; ++c) {
        const double value = diagonals.row(k)[c];
        curvatures[static_cast<std::size_t>(c)] += has_rank_one ? value - value * value / sum : value;
      }
    }
    parallel_for(q * q, execution_, [&](Index pair) {
      const Index j = pair / q;
      const Index l = pair % q;
      if (j < l) return;
      const DenseView<double> out = block(hessian_.view(), j * classes, classes, l * classes, classes);
      if (has_rank_one) {
        const DenseView<const double> all = static_cast<const Matrix<double>&>(roots).view();
        add_product(Product::AtB, block(all, 0, count, j * classes, classes),
                    block(all, 0, count, l * classes, classes), out, -1.0);
      }
      for (Index k = 0; k < count; ++k) {
        const double weight = images_.row(row(k))[j] * images_.row(row(k))[l];
        for (Index c = 0; c < classes; ++c) out.row(c)[c] += weight * diagonals.row(k)[c];
      }
    });
  }
  const double scale = static_cast<double>(n) / static_cast<double>(taken);
  if (problem_.prior.coupling != nullptr) problem_.prior.coupling->diag(coupled.data());
  const double mean = scale * dot_block(curvatures.data(), coupled.data(), classes) / static_cast<double>(classes);
  typical_ = std::sqrt(1.0 + other_variance_ * mean);
  for (Index j = 0; j < hessian_.rows(); ++j) {
    for (Index l = 0; l <= j; ++l) hessian_.row(l)[j] = hessian_.row(j)[l] = scale * hessian_.row(j)[l];
  }
}

template <class T>
void SubspacePreconditioner<T>::factorize() {
  const Index size = directions() * factor_count(problem_);
  const Coupling* const coupling = problem_.prior.coupling;
  if (coupling == nullptr) {
    system_ = hessian_;
  } else {
    const Index all = hessian_.rows();
    Matrix<double> half(all, size), transposed(size, all);
    coupling->to_factors(all * directions(), hessian_.data(), half.data());
    copy_transposed(static_cast<const Matrix<double>&>(half).view(), transposed.view());
    system_ = Matrix<double>(size, size);
    coupling->to_factors(size * directions(), transposed.data(), system_.data());
  }
  for (Index j = 0; j < size; ++j) system_.row(j)[j] += 1.0;
  if (!factor_cholesky(system_.view())) system_ = Matrix<double>();
}

template <class T>
void SubspacePreconditioner<T>::apply(T* coefficients, T* image) const {
  if (system_.size() == 0) return;
  const Index n = values_.rows();
  const Index q = directions();
  const Index classes = problem_.likelihood->outputs();
  const Coupling* const coupling = problem_.prior.coupling;
  const Blocks parts(n, (n + parts_wanted - 1) / parts_wanted);
  std::vector<Matrix<double>> sums(static_cast<std::size_t>(parts.number()));
  parallel_for(parts.number(), execution_, [&](Index part) {
    Matrix<double>& sum = sums[static_cast<std::size_t>(part)];
    sum = Matrix<double>(q, classes);
    for (Index i = parts.first(part); i < parts.first(part) + parts.length(part); ++i)
      for (Index j = 0; j < q; ++j) axpy_block(images_.row(i)[j], coefficients + i * classes, sum.row(j), classes);
  });
  Matrix<double> inside(q, classes), change(q, classes);
  for (const Matrix<double>& sum : sums) axpy_block(1.0, sum.data(), inside.data(), inside.size());
  Matrix<double> factors = inside;
  for (Index k = 0; k < change.size(); ++k) change.data()[k] = (typical_ - 1.0) * inside.data()[k];
  if (coupling != nullptr) {
    factors = Matrix<double>(q, coupling->factors());
    coupling->to_factors(q, inside.data(), factors.data());
  }
  const DenseView<double> column(factors.data(), factors.size(), 1);
  solve_lower(system_.view(), column);
  solve_lower_transposed(system_.view(), column);
  if (coupling == nullptr) {
    inside = factors;
  } else {
    coupling->from_factors(q, factors.data(), inside.data());
  }
  add_product(Product::AB, hessian_.view(), DenseView<const double>(inside.data(), inside.size(), 1),
              DenseView<double>(change.data(), change.size(), 1), -typical_);
  inside = change;
  if (coupling != nullptr) coupling->apply(q, inside.data());
  for_row_blocks(n, classes, execution_, [&](Index first, Index count) {
    thread_local Buffer<double> row;
    row.resize(static_cast<std::size_t>(classes));
    const auto add = [&](const double* factor, const Matrix<double>& rows, T* to) {
      convert_block(to, row.data(), classes);
      for (Index j = 0; j < q; ++j) axpy_block(factor[j], rows.row(j), row.data(), classes);
      convert_block(row.data(), to, classes);
    };
    for (Index i = first; i < first + count; ++i) {
      add(values_.row(i), change, coefficients + i * classes);
      add(images_.row(i), inside, image + i * classes);
    }
  });
}

template class SubspacePreconditioner<float>;
template class SubspacePreconditioner<double>;

}  // namespace taxolearn
