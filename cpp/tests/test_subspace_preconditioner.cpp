#include <doctest/doctest.h>

#include <Eigen/Eigenvalues>

#include "blocks.hpp"
#include "taxolearn/fit/fit.hpp"
#include "taxolearn/fit/spaces.hpp"
#include "taxolearn/fit/subspace_preconditioner.hpp"
#include "taxolearn/likelihood/independent_logistic.hpp"
#include "taxolearn/operators/linear.hpp"
#include "taxolearn/solver/lbfgs.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

const std::vector<double> loud{0.7, 40.0, 90.0};  // both dense blocks stand out

struct Example {
  Three inputs;
  Labels given;
  IndependentLogistic independent{given.labels.data(), block_rows, block_classes, given.weights.data()};
  Problem problem;
  MatrixXd Z;  ///< all features, n x d
  MatrixXd R;

  explicit Example(bool tree, const std::vector<double>& variances = loud)
      : Z(std::sqrt(1.5) * inputs.glued(variances)), R(MatrixXd::Identity(block_classes, block_classes)) {
    problem.X = with_variances(inputs.view(), variances);
    problem.likelihood = &given.likelihood;
    problem.prior.variance = 1.5;
    problem.prior.intercept_variance = 0.3;
    if (!tree) return;
    problem.prior.coupling = &given.tree;
    MatrixXd unit = MatrixXd::Identity(block_classes, block_classes);
    R.resize(block_classes, given.tree.factors());
    for (Index c = 0; c < block_classes; ++c) {
      const VectorXd from = unit.col(c);
      VectorXd to(given.tree.factors());
      given.tree.to_factors(1, from.data(), to.data());
      R.row(c) = to.transpose();
    }
  }

  /// Hessian of a row's loss.
  MatrixXd hessian(Index i, const MatrixXd& u) const {
    MatrixXd out(block_classes, block_classes), row = u.row(i);
    for (Index c = 0; c < block_classes; ++c) {
      VectorXd state = row.transpose(), x = MatrixXd::Identity(block_classes, block_classes).col(c);
      problem.likelihood->curvature(i, 1, state.data());
      problem.likelihood->hessian(i, 1, state.data(), x.data());
      out.col(c) = x;
    }
    return out;
  }

  /// P (d factors x d factors), of weights with a row per feature: where V has values the Hessian, divided by the
  /// typical curvature of the others; the identity elsewhere.
  MatrixXd dense_preconditioner(const MatrixXd& V, const MatrixXd& u, double typical) const {
    const MatrixXd image = Z.transpose() * V;
    const MatrixXd U =
        Eigen::HouseholderQR<MatrixXd>(image).householderQ() * MatrixXd::Identity(image.rows(), image.cols());
    const Index factors = R.cols();
    const Index d = Z.cols();
    MatrixXd P = MatrixXd::Identity(d * factors, d * factors);
    const MatrixXd inside = (1.0 / typical - 1.0) * U * U.transpose();
    for (Index j = 0; j < d; ++j)
      for (Index k = 0; k < d; ++k)
        P.block(j * factors, k * factors, factors, factors) += inside(j, k) * MatrixXd::Identity(factors, factors);
    for (Index i = 0; i < block_rows; ++i) {
      const VectorXd z = U * (U.transpose() * Z.row(i).transpose());
      const MatrixXd H = R.transpose() * hessian(i, u) * R;
      for (Index j = 0; j < d; ++j)
        for (Index k = 0; k < d; ++k) P.block(j * factors, k * factors, factors, factors) += z[j] * z[k] / typical * H;
    }
    return P;
  }
};

/// The leading principal components of both dense blocks at the rows that have a weight, zero elsewhere: all those whose
/// variance is above the least one.
MatrixXd leading_components(const Example& example, double least) {
  MatrixXd V = example.Z.rightCols(10);
  VectorXd used(block_rows);
  for (Index i = 0; i < block_rows; ++i) used[i] = example.given.weights[static_cast<std::size_t>(i)] > 0.0 ? 1.0 : 0.0;
  V.rowwise() -= (used.transpose() * V / used.sum()).eval();
  V = (used.asDiagonal() * V).eval();
  const Eigen::SelfAdjointEigenSolver<MatrixXd> axes(V.transpose() * V / used.sum());
  return V * axes.eigenvectors().rightCols((axes.eigenvalues().array() > least).count());
}

/// Rows of a matrix next to each other.
VectorXd flat(const MatrixXd& A) {
  VectorXd out(A.size());
  for (Index i = 0; i < A.rows(); ++i) out.segment(i * A.cols(), A.cols()) = A.row(i).transpose();
  return out;
}

}  // namespace

TEST_CASE("the subspace preconditioner is exact in the directions of narrow dense blocks, the identity elsewhere") {
  for (const bool tree : {false, true}) {
    for (const bool softmax : {true, false}) {
      Example example(tree);
      if (!softmax) example.problem.likelihood = &example.independent;
      const auto made = SubspacePreconditioner<double>::make(example.problem, {}, two);
      REQUIRE(made != nullptr);
      const double other = 0.05 * example.Z.leftCols(25).squaredNorm() / static_cast<double>(block_rows);
      const MatrixXd V = leading_components(example, other);
      CHECK(made->directions() == V.cols());
      CHECK(V.cols() > 6);  // of both blocks
      const auto kernel = make_linear<double>(example.problem.X, 1.5, LinearAlgorithm::automatic, two);
      const MatrixXd u = Random(4).matrix(block_rows, block_classes);
      made->renew(as_matrix(u), *kernel);

      const MatrixXd a = Random(5).matrix(block_rows, block_classes);
      const MatrixXd G = example.R * example.R.transpose();
      const MatrixXd M = example.Z * example.Z.transpose();
      const auto image = [&](const MatrixXd& S) -> MatrixXd { return (M * S * G).rowwise() + 0.3 * S.colwise().sum(); };
      Matrix<double> out = as_matrix(a), out_image = as_matrix(image(a));
      made->apply(out.data(), out_image.data());
      const MatrixXd found = dense(static_cast<const Matrix<double>&>(out).view());
      CHECK(relative_error(dense(static_cast<const Matrix<double>&>(out_image).view()), image(found)) < 1e-10);
      CHECK((found - a).norm() > 1e-3 * a.norm());

      double curvature = 0.0;  // mean of the diagonal of G with the sum of the Hessians
      for (Index i = 0; i < block_rows; ++i) curvature += G.diagonal().dot(example.hessian(i, u).diagonal());
      const double typical = std::sqrt(1.0 + other * curvature / static_cast<double>(block_classes));
      CHECK(made->typical_curvature() == doctest::Approx(typical).epsilon(1e-9));
      const MatrixXd P = example.dense_preconditioner(V, u, typical);
      const MatrixXd before = example.Z.transpose() * a * example.R, after = example.Z.transpose() * found * example.R;
      CHECK(relative_error(P * flat(after), flat(before)) < 1e-9);

      const auto serial = SubspacePreconditioner<double>::make(example.problem, {}, one);
      serial->renew(as_matrix(u), *kernel);
      Matrix<double> same = as_matrix(a), same_image = as_matrix(image(a));
      serial->apply(same.data(), same_image.data());
      CHECK(identical(dense(static_cast<const Matrix<double>&>(same).view()), found));
    }
  }
}

TEST_CASE("it changes nothing before the first renewal, and knows its rows where the likelihood has some of them") {
  const Example example(true);
  const auto whole = SubspacePreconditioner<double>::make(example.problem, {}, one);
  const MatrixXd a = Random(5).matrix(block_rows, block_classes);
  Matrix<double> same = as_matrix(a), same_image = as_matrix(a);
  whole->apply(same.data(), same_image.data());
  CHECK(identical(dense(static_cast<const Matrix<double>&>(same).view()), a));

  std::vector<Index> rows;
  for (Index i = 0; i < block_rows; ++i)
    if (i % 4 != 1) rows.push_back((i * 7) % block_rows);
  const auto count = static_cast<Index>(rows.size());
  const auto part = example.given.likelihood.subset(rows, std::vector<double>(rows.size(), 1.0));
  Problem problem = example.problem;
  problem.likelihood = part.get();
  const auto some = SubspacePreconditioner<double>::make(problem, rows, one);
  REQUIRE(some != nullptr);
  const auto kernel = make_linear<double>(problem.X, 1.5, LinearAlgorithm::automatic, one);
  const auto of_rows = kernel->subset(rows, one);
  const MatrixXd u = Random(4).matrix(count, block_classes);
  some->renew(as_matrix(u), *of_rows);
  Matrix<double> out = as_matrix(MatrixXd(a.topRows(count))), out_image(count, block_classes);
  some->apply(out.data(), out_image.data());

  // The same with all rows, of which the others have no weight.
  std::vector<double> factors(block_rows, 0.0);
  MatrixXd all_u = MatrixXd::Zero(block_rows, block_classes), all_a = all_u;
  for (Index k = 0; k < count; ++k) {
    const Index i = rows[static_cast<std::size_t>(k)];
    factors[static_cast<std::size_t>(i)] = 1.0;
    all_u.row(i) = u.row(k);
    all_a.row(i) = a.row(k);
  }
  std::vector<Index> every;
  for (Index i = 0; i < block_rows; ++i) every.push_back(i);
  const auto masked = example.given.likelihood.subset(every, factors);
  problem.likelihood = masked.get();
  const auto stacked = SubspacePreconditioner<double>::make(problem, {}, one);
  stacked->renew(as_matrix(all_u), *kernel);
  Matrix<double> expected = as_matrix(all_a), expected_image(block_rows, block_classes);
  stacked->apply(expected.data(), expected_image.data());
  for (Index k = 0; k < count; ++k) {
    const Index i = rows[static_cast<std::size_t>(k)];
    for (Index c = 0; c < block_classes; ++c) CHECK(out.row(k)[c] == doctest::Approx(expected.row(i)[c]).epsilon(1e-9));
  }
}

TEST_CASE("there is none where no directions stand out, or inputs are one matrix, or kernels are not linear") {
  CHECK(SubspacePreconditioner<double>::make(Example(false).problem, {}, one) != nullptr);
  CHECK(SubspacePreconditioner<double>::make(Example(false, {400.0, 0.001, 0.001}).problem, {}, one) == nullptr);
  Example example(false);
  example.problem.X = example.inputs.numbers.dense();
  CHECK(SubspacePreconditioner<double>::make(example.problem, {}, one) == nullptr);
  example.problem.X = side_by_side({example.inputs.numbers.dense(), example.inputs.more.dense()});
  CHECK(SubspacePreconditioner<double>::make(example.problem, {}, one) == nullptr);
}

TEST_CASE("solvers that do not use it find the same minimum where there is one") {
  Example example(false);
  REQUIRE(SubspacePreconditioner<double>::make(example.problem, {}, one) != nullptr);
  CHECK(may_have_subspace_preconditioner(example.problem));
  FitSettings settings;
  settings.tolerance = 1e-9;
  settings.space = Space::coefficients;
  settings.precision = Precision::double_;
  settings.method = Method::lbfgs;
  const FitResult expected = fit(example.problem, settings, Start{}, one);
  CHECK(expected.status == Status::converged);
  for (const Method method : {Method::nonlinear_cg, Method::newton, Method::exact}) {
    CAPTURE(static_cast<int>(method));
    settings.method = method;
    const FitResult found = fit(example.problem, settings, Start{}, two);
    CHECK(found.status == Status::converged);
    CHECK(found.objective == doctest::Approx(expected.objective).epsilon(2e-9));
  }
}

TEST_CASE("a product from outside leaves vector and image in the last slot that was asked for, before and after") {
  const Example example(true);
  FitResult result;
  CoefficientSpace<double> space(example.problem, lbfgs_slots(2), one, result);
  REQUIRE(space.has_preconditioner());
  const Matrix<double> a = as_matrix(Random(5).matrix(block_rows, block_classes));
  Matrix<double> image(block_rows, block_classes);
  for (const bool renewed : {false, true}) {
    if (renewed) space.renew_preconditioner();
    space.kernel(a.data(), image.data());
    const int last = lbfgs_slots(2) - 1;
    CHECK(std::equal(a.data(), a.data() + a.size(), space.slot(last).begin()));
    CHECK(std::equal(image.data(), image.data() + image.size(), space.slot_image(last).begin()));
  }
}

TEST_CASE_TEMPLATE("with it, fits take fewer iterations to the same minimum", T, float, double) {
  for (const bool tree : {false, true}) {
    const Index rows = 600, features = 900;
    const Inputs words(rows, features, 12, 1), numbers(rows, 3, 3, 2);
    const std::vector<double> variances{1.0, 300.0};
    const MatrixXd u = 10.0 * numbers.X * Random(7).matrix(3, block_classes) + words.X * Random(8).matrix(features, 4);
    std::vector<std::int32_t> labels;
    for (Index i = 0; i < rows; ++i) {
      Index best = 0;
      u.row(i).maxCoeff(&best);
      labels.push_back(static_cast<std::int32_t>(best));
    }
    const Softmax likelihood(labels.data(), rows, block_classes, nullptr);
    const Labels given;
    Problem problem;
    problem.X = with_variances(side_by_side({words.views[0], numbers.views[5]}), variances);
    problem.likelihood = &likelihood;
    problem.prior.coupling = tree ? &given.tree : nullptr;
    MatrixXd glued(rows, features + 3);
    glued << words.X, std::sqrt(300.0) * numbers.X;
    const Padded<double> padded(glued);
    Problem whole = problem;
    whole.X = static_cast<const Padded<double>&>(padded).view();

    MinimizeSettings settings;
    settings.history = 2;
    settings.tolerance = 1e-6;
    const auto run = [&](const Problem& each, bool expected) {
      FitResult result;
      CoefficientSpace<T> space(each, lbfgs_slots(2), two, result);
      CHECK(space.has_preconditioner() == expected);
      MinimizeResult found = lbfgs(space, settings, [](const MinimizeResult&) {});
      CoefficientSpace<double> precise(problem, 1, two, result);  // the objective without rounded images
      precise.start(space.coefficients());
      found.objective = precise.advance(0.0, 0);
      return found;
    };
    const MinimizeResult with = run(problem, true);
    const MinimizeResult without = run(whole, false);
    CHECK(with.status == Status::converged);
    CHECK(without.status == Status::converged);
    CHECK(with.objective == doctest::Approx(without.objective).epsilon(2e-6));
    CHECK(2 * with.iterations < without.iterations);
  }
}
