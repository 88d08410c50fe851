#include "taxolearn/fit/preconditioner.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "taxolearn/base/eigenvectors.hpp"
#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/base/parallel.hpp"
#include "taxolearn/base/product.hpp"
#include "taxolearn/base/triangular.hpp"
#include "taxolearn/base/vector.hpp"

namespace taxolearn {
namespace {

constexpr Index most_features = 1000;  // an eigenvalue decomposition of this size takes seconds
constexpr Index most_classes = 100;    // with 1000 classes (ALOI) it took more iterations, not fewer
constexpr Index rows_together = 128;
constexpr Index parts_wanted = 8;           // enough to keep the threads busy
constexpr double rows_per_dimension = 4.0;  // at least
constexpr double renewals = 5.0;            // about as many as a fit has
constexpr double eigen_work = 10.0;         // of an eigenvalue decomposition, relative to the cube of its size
constexpr double share_of_setup = 8.0;      // products that the setup of a whole fit may take
constexpr double share_of_product = 0.3;    // of a product that applying the inverse may take

/// Flops of a kernel product.
double product_work(const Problem& problem) {
  return 4.0 * static_cast<double>(input_entries(problem.X)) * static_cast<double>(problem.likelihood->outputs());
}

/// How many rows a sum of squares of the given size is taken from: as many as cost half a product, enough to know it.
double rows_taken(const Problem& problem, Index size) {
  const double n = static_cast<double>(input_rows(problem.X));
  const double d = static_cast<double>(size);
  return std::min(n, std::max(rows_per_dimension * d, 0.25 * product_work(problem) / (d * d)));
}

/// A sum (rows x columns of the result) over groups of consecutive rows, evenly spread, about as many rows as wanted:
/// add(first, count, sum). Returns it and the number of rows.
template <class Add>
std::pair<Matrix<double>, Index> sum_over_some(Index rows, double wanted, Index sum_rows, Index sum_columns,
                                               const Execution& execution, const Add& add) {
  const Index groups = (static_cast<Index>(wanted) + rows_together - 1) / rows_together;
  const Blocks parts(groups, (groups + parts_wanted - 1) / parts_wanted);
  const auto first = [&](Index group) { return rows * group / groups; };
  const auto count = [&](Index group) { return std::min(rows_together, first(group + 1) - first(group)); };
  std::vector<Matrix<double>> sums(static_cast<std::size_t>(parts.number()));
  parallel_for(parts.number(), execution, [&](Index part) {
    Matrix<double>& sum = sums[static_cast<std::size_t>(part)];
    sum = Matrix<double>(sum_rows, sum_columns);
    for (Index k = parts.first(part); k < parts.first(part) + parts.length(part); ++k) add(first(k), count(k), sum);
  });
  Matrix<double> total(sum_rows, sum_columns);
  for (const Matrix<double>& sum : sums) axpy_block(1.0, sum.data(), total.data(), total.size());
  Index taken = 0;
  for (Index k = 0; k < groups; ++k) taken += count(k);
  return {std::move(total), taken};
}

/// Eigenvectors of a symmetric matrix replace it, in columns; returns the eigenvalues, none below zero.
std::vector<double> to_eigenvectors(Matrix<double>& matrix) {
  std::vector<double> values = symmetric_eigenvectors(matrix.view());
  for (double& value : values) value = std::max(value, 0.0);
  return values;
}

/// Mean (1 x d) and covariance of z = sqrt(variance) x.
struct Moments {
  Matrix<double> mean, covariance;

  Moments(const Problem& problem, const Execution& execution)
      : mean(1, input_features(problem.X)), covariance(mean.cols(), mean.cols()) {
    const Index d = mean.cols();
    Matrix<double> identity(d, d), ones(rows_together, 1);
    for (Index j = 0; j < d; ++j) identity.row(j)[j] = 1.0;
    std::fill(ones.data(), ones.data() + ones.size(), 1.0);
    const auto [sums, taken] = sum_over_some(
        input_rows(problem.X), rows_taken(problem, d), d + 1, d, execution,
        [&](Index first, Index count, Matrix<double>& sum) {
          Matrix<double> rows(count, d);
          expand_rows(problem.X, first, identity.view(), rows.view());
          add_product(Product::AtB, rows.view(), rows.view(), row_block(sum.view(), 0, d));
          add_product(Product::AtB, row_block(ones.view(), 0, count), rows.view(), row_block(sum.view(), d, 1));
        });
    const double each = 1.0 / static_cast<double>(taken);
    for (Index j = 0; j < d; ++j) mean.data()[j] = std::sqrt(problem.prior.variance) * each * sums.row(d)[j];
    for (Index j = 0; j < d; ++j)
      for (Index k = 0; k < d; ++k)
        covariance.row(j)[k] = problem.prior.variance * each * sums.row(j)[k] - mean.data()[j] * mean.data()[k];
  }
};

/// R^T H R.
Matrix<double> in_factors(const Coupling* coupling, const Matrix<double>& H) {
  if (coupling == nullptr) return H;
  const Index classes = coupling->classes();
  const Index factors = coupling->factors();
  Matrix<double> HR(classes, factors), RtH(factors, classes), out(factors, factors);
  coupling->to_factors(classes, H.data(), HR.data());
  for (Index p = 0; p < factors; ++p)
    for (Index c = 0; c < classes; ++c) RtH.row(p)[c] = HR.row(c)[p];
  coupling->to_factors(factors, RtH.data(), out.data());
  return out;
}

}  // namespace

bool KroneckerPreconditioner::is_worthwhile(const Problem& problem) {
  const Index features = input_features(problem.X);
  if (features < 1 || features > most_features || problem.likelihood->outputs() > most_classes) return false;
  const auto d = static_cast<double>(features);
  const auto classes = static_cast<double>(problem.likelihood->outputs());
  const auto factors = static_cast<double>(factor_count(problem));
  const double product = product_work(problem);
  const double sums = 2.0 * rows_taken(problem, features) * d * d +
                      renewals * 2.0 * rows_taken(problem, problem.likelihood->outputs()) * classes * classes;
  const double setup = sums + eigen_work * (d * d * d + renewals * factors * factors * factors);
  const double apply = 2.0 * 4.0 * d * factors * (d + factors);
  return setup <= share_of_setup * product && apply <= share_of_product * product;
}

KroneckerPreconditioner::KroneckerPreconditioner(const Problem& problem, const Execution& execution)
    : problem_(problem),
      execution_(execution),
      mean_(1, input_features(problem.X)),
      scratch_(input_features(problem.X), factor_count(problem)),
      more_(scratch_.rows(), scratch_.cols()) {
  Moments moments(problem, execution);
  inputs_ = std::move(moments.covariance);
  input_values_ = to_eigenvectors(inputs_);
  set_product(Product::AB, moments.mean.view(), inputs_.view(), mean_.view());
  renew(Matrix<double>());
}

void KroneckerPreconditioner::renew(const Matrix<double>& u) {
  const Likelihood& likelihood = *problem_.likelihood;
  const Index classes = likelihood.outputs();
  const double wanted = std::min(rows_taken(problem_, classes), static_cast<double>(u.rows()));
  auto [H, taken] =
      sum_over_some(u.rows(), wanted, classes, classes, execution_, [&](Index first, Index count, Matrix<double>& sum) {
        Matrix<double> state(count, classes);
        std::copy(u.row(first), u.row(first) + state.size(), state.data());
        likelihood.curvature(first, count, state.data());
        likelihood.add_hessian(first, count, state.data(), sum.data());
      });
  const double scale = taken == 0 ? 0.0 : static_cast<double>(u.rows()) / static_cast<double>(taken);
  for (Index k = 0; k < H.size(); ++k) H.data()[k] *= scale;
  classes_ = in_factors(problem_.prior.coupling, H);
  const std::vector<double> values = to_eigenvectors(classes_);
  inverse_ = Matrix<double>(inputs_.rows(), classes_.rows());
  for (Index j = 0; j < inverse_.rows(); ++j)
    for (Index p = 0; p < inverse_.cols(); ++p)
      inverse_.row(j)[p] =
          1.0 / (1.0 + input_values_[static_cast<std::size_t>(j)] * values[static_cast<std::size_t>(p)]);
  set_correction(H, values);
}

void KroneckerPreconditioner::set_correction(const Matrix<double>& H, const std::vector<double>& factor_values) {
  const Index factors = classes_.rows();
  const Index classes = H.rows();
  Matrix<double> transposed(factors, factors);
  for (Index p = 0; p < factors; ++p)
    for (Index q = 0; q < factors; ++q) transposed.row(p)[q] = classes_.row(q)[p];
  functions_ = Matrix<double>(factors, classes);
  if (problem_.prior.coupling == nullptr) {
    functions_ = std::move(transposed);
  } else {
    problem_.prior.coupling->from_factors(factors, transposed.data(), functions_.data());
  }
  Matrix<double> weighted = functions_;
  for (Index p = 0; p < factors; ++p) {
    double weight = 0.0;
    for (Index j = 0; j < mean_.cols(); ++j) weight += mean_.data()[j] * mean_.data()[j] * inverse_.row(j)[p];
    for (Index c = 0; c < classes; ++c) weighted.row(p)[c] *= weight;
  }
  Matrix<double> S(classes, classes);
  set_product(Product::AtB, functions_.view(), weighted.view(), S.view());
  for (Index c = 0; c < classes; ++c) S.row(c)[c] += problem_.prior.intercept_variance;
  Matrix<double> roots = problem_.prior.coupling == nullptr ? classes_ : H;  // N, by the eigenvectors of H
  const std::vector<double> values = problem_.prior.coupling == nullptr ? factor_values : to_eigenvectors(roots);
  for (Index c = 0; c < classes; ++c)
    for (Index k = 0; k < classes; ++k) roots.row(c)[k] *= std::sqrt(values[static_cast<std::size_t>(k)]);
  Matrix<double> SN(classes, classes), system(classes, classes), half(classes, classes);
  set_product(Product::AB, S.view(), roots.view(), SN.view());
  set_product(Product::AtB, roots.view(), SN.view(), system.view());
  for (Index c = 0; c < classes; ++c) system.row(c)[c] += 1.0;
  correction_ = Matrix<double>(classes, classes);
  if (!factor_cholesky(system.view())) return;  // an overflow: no correction
  copy_transposed(roots.view(), half.view());
  solve_lower(system.view(), half.view());
  set_product(Product::AtB, half.view(), half.view(), correction_.view());
}

void KroneckerPreconditioner::apply(double* point) {
  const Index d = scratch_.rows();
  const Index factors = scratch_.cols();
  const Index classes = correction_.rows();
  const DenseView<double> W(point, d, factors);
  const DenseView<double> b(point + d * factors, 1, classes);
  const double sigma = std::sqrt(problem_.prior.intercept_variance);
  set_product(Product::AtB, inputs_.view(), W, scratch_.view());
  set_product(Product::AB, scratch_.view(), classes_.view(), more_.view());
  double* const inside = more_.data();
  const double* const inverse = inverse_.data();
  for (Index k = 0; k < more_.size(); ++k) inside[k] *= inverse[k];
  // Rows here are columns of the formula: J times what is inside, T times that, J^T times that.
  Matrix<double> sums(1, factors), image(1, classes), down(1, classes), back(1, factors);
  set_product(Product::AB, mean_.view(), more_.view(), sums.view());
  set_product(Product::AB, sums.view(), functions_.view(), image.view());
  axpy_block(sigma, b.data, image.data(), classes);
  set_product(Product::AB, image.view(), correction_.view(), down.view());
  set_product(Product::ABt, down.view(), functions_.view(), back.view());
  for (Index j = 0; j < d; ++j) {
    for (Index p = 0; p < factors; ++p) {
      inside[j * factors + p] -= inverse[j * factors + p] * mean_.data()[j] * back.data()[p];
    }
  }
  axpy_block(-sigma, down.data(), b.data, classes);
  set_product(Product::ABt, more_.view(), classes_.view(), scratch_.view());
  set_product(Product::AB, inputs_.view(), scratch_.view(), W);
}

}  // namespace taxolearn
