#include "taxolearn/klr/kronecker.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "taxolearn/base/product.hpp"
#include "taxolearn/base/vector.hpp"

namespace taxolearn {
namespace {

constexpr Index most_features = 1000;  // an eigenvalue decomposition of this size takes seconds
constexpr Index most_classes = 100;    // with 1000 classes (ALOI) it took more iterations, not fewer
constexpr Index rows_together = 32;
constexpr double rows_per_dimension = 4.0;  // at least
constexpr double renewals = 5.0;            // about as many as a fit has
constexpr double eigen_work = 10.0;         // of an eigenvalue decomposition, relative to the cube of its size
constexpr double share_of_setup = 8.0;      // products that the setup of a whole fit may take
constexpr double share_of_product = 0.3;    // of a product that applying the inverse may take

using Square = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Flops of a kernel product.
double product_work(const Problem& problem) {
  return 4.0 * static_cast<double>(input_entries(problem.X)) * static_cast<double>(problem.likelihood->classes());
}

/// How many rows a sum of squares of the given size is taken from: as many as cost half a product, enough to know it.
double rows_taken(const Problem& problem, Index size) {
  const double n = static_cast<double>(input_rows(problem.X));
  const double d = static_cast<double>(size);
  return std::min(n, std::max(rows_per_dimension * d, 0.25 * product_work(problem) / (d * d)));
}

/// Groups of consecutive rows, evenly spread, about as many rows as wanted: body(first, count).
template <class Body>
Index for_some_rows(Index rows, double wanted, const Body& body) {
  const Index groups = (static_cast<Index>(wanted) + rows_together - 1) / rows_together;
  Index taken = 0;
  for (Index k = 0; k < groups; ++k) {
    const Index first = rows * k / groups;
    const Index count = std::min(rows_together, rows * (k + 1) / groups - first);
    body(first, count);
    taken += count;
  }
  return taken;
}

/// Eigenvectors of a symmetric matrix replace it, in columns; returns the eigenvalues, none below zero.
std::vector<double> to_eigenvectors(Matrix<double>& matrix) {
  Eigen::Map<Square> map(matrix.data(), matrix.rows(), matrix.cols());
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver{Eigen::MatrixXd(map)};
  map = solver.eigenvectors();
  std::vector<double> values(static_cast<std::size_t>(matrix.rows()));
  for (Index k = 0; k < matrix.rows(); ++k)
    values[static_cast<std::size_t>(k)] = std::max(solver.eigenvalues()[k], 0.0);
  return values;
}

/// variance times the mean of x x^T.
Matrix<double> second_moments(const Problem& problem) {
  const Index d = input_features(problem.X);
  Matrix<double> identity(d, d), sum(d, d), rows(rows_together, d);
  for (Index j = 0; j < d; ++j) identity.row(j)[j] = 1.0;
  const Index taken = for_some_rows(input_rows(problem.X), rows_taken(problem, d), [&](Index first, Index count) {
    const DenseView<double> some(rows.data(), count, d);
    expand_rows(problem.X, first, identity.view(), some);
    add_product(Product::AtB, some, some, sum.view());
  });
  const double scale = problem.variance / static_cast<double>(taken);
  for (Index k = 0; k < sum.size(); ++k) sum.data()[k] *= scale;
  return sum;
}

/// R^T H R.
Matrix<double> in_factors(const Coupling* coupling, Matrix<double>&& H) {
  if (coupling == nullptr) return std::move(H);
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

bool Kronecker::pays(const Problem& problem) {
  const Index features = input_features(problem.X);
  if (features < 1 || features > most_features || problem.likelihood->classes() > most_classes) return false;
  const auto d = static_cast<double>(features);
  const auto classes = static_cast<double>(problem.likelihood->classes());
  const auto factors = static_cast<double>(factor_count(problem));
  const double product = product_work(problem);
  const double sums = 2.0 * rows_taken(problem, features) * d * d +
                      renewals * 2.0 * rows_taken(problem, problem.likelihood->classes()) * classes * classes;
  const double setup = sums + eigen_work * (d * d * d + renewals * factors * factors * factors);
  const double apply = 2.0 * 4.0 * d * factors * (d + factors);
  return setup <= share_of_setup * product && apply <= share_of_product * product;
}

Kronecker::Kronecker(const Problem& problem)
    : problem_(problem),
      inputs_(second_moments(problem)),
      scratch_(input_features(problem.X), factor_count(problem)),
      more_(scratch_.rows(), scratch_.cols()) {
  input_values_ = to_eigenvectors(inputs_);
  renew(Matrix<double>());
}

void Kronecker::renew(const Matrix<double>& u) {
  const Likelihood& likelihood = *problem_.likelihood;
  const Index classes = likelihood.classes();
  Matrix<double> sum(classes, classes), state(rows_together, classes);
  const double wanted = std::min(rows_taken(problem_, classes), static_cast<double>(u.rows()));
  const Index taken = for_some_rows(u.rows(), wanted, [&](Index first, Index count) {
    std::copy(u.row(first), u.row(first) + count * classes, state.data());
    likelihood.curve(first, count, state.data());
    likelihood.add_hessian(first, count, state.data(), sum.data());
  });
  const double scale = taken == 0 ? 0.0 : static_cast<double>(u.rows()) / static_cast<double>(taken);
  for (Index k = 0; k < sum.size(); ++k) sum.data()[k] *= scale;
  intercepts_.resize(static_cast<std::size_t>(classes));
  for (Index c = 0; c < classes; ++c)
    intercepts_[static_cast<std::size_t>(c)] = 1.0 / (1.0 + problem_.sigma2 * std::max(sum.row(c)[c], 0.0));
  classes_ = in_factors(problem_.coupling, std::move(sum));
  const std::vector<double> values = to_eigenvectors(classes_);
  inverse_ = Matrix<double>(inputs_.rows(), classes_.rows());
  for (Index j = 0; j < inverse_.rows(); ++j)
    for (Index p = 0; p < inverse_.cols(); ++p)
      inverse_.row(j)[p] =
          1.0 / (1.0 + input_values_[static_cast<std::size_t>(j)] * values[static_cast<std::size_t>(p)]);
}

void Kronecker::apply(double* point) {
  const Index d = scratch_.rows();
  const Index factors = scratch_.cols();
  const DenseView<double> W(point, d, factors);
  set_product(Product::AtB, inputs_.view(), W, scratch_.view());
  set_product(Product::AB, scratch_.view(), classes_.view(), more_.view());
  for (Index k = 0; k < more_.size(); ++k) more_.data()[k] *= inverse_.data()[k];
  set_product(Product::ABt, more_.view(), classes_.view(), scratch_.view());
  set_product(Product::AB, inputs_.view(), scratch_.view(), W);
  double* const b = point + d * factors;
  for (std::size_t c = 0; c < intercepts_.size(); ++c) b[c] *= intercepts_[c];
}

}  // namespace taxolearn
