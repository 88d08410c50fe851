#include <doctest/doctest.h>

#include "operators.hpp"
#include "own_kernel.hpp"
#include "taxolearn/operators/low_rank.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

/// The matrix X itself: entry (i, j) is X[i, j].
class MatrixKernel final : public Kernel {
 public:
  Index parameters() const override { return 0; }
  std::unique_ptr<KernelEntries<float>> single_entries(const InputRows&, const InputRows&,
                                                       const Execution&) const override {
    return nullptr;
  }
  std::unique_ptr<KernelEntries<double>> double_entries(const InputRows& left, const InputRows& right,
                                                        const Execution&) const override {
    return std::make_unique<Entries>(left, right);
  }
  void diag(const InputRows& rows, double* out) const override {
    const auto& X = std::get<DenseView<const double>>(rows.X);
    for (Index i = 0; i < rows.count(); ++i) out[i] = X.row(rows.source(i))[rows.source(i)];
  }
  void diag_gradient(const InputRows&, const double*, double*) const override {}

 private:
  struct Entries final : KernelEntries<double> {
    Entries(const InputRows& left_, const InputRows& right_) : left(left_), right(right_) {}
    void block(Index i, Index j, DenseView<double> out) const override {
      const auto& X = std::get<DenseView<const double>>(left.X);
      for (Index a = 0; a < out.rows; ++a) {
        for (Index b = 0; b < out.cols; ++b) out.row(a)[b] = X.row(left.source(i + a))[right.source(j + b)];
      }
    }
    void gradient(Index, Index, DenseView<const double>, double*) const override {}
    InputRows left, right;
  };
};

InputRows rows_of(const Matrix<double>& X) { return InputRows{X.view(), {}}; }

MatrixXd kernel_matrix(const Kernel& kernel, const InputRows& left, const InputRows& right) {
  Matrix<double> out(left.count(), right.count());
  kernel.double_entries(left, right, one)->block(0, 0, out.view());
  return dense(out.view());
}

VectorXd as_vector(const std::vector<double>& values) {
  return Eigen::Map<const VectorXd>(values.data(), static_cast<Index>(values.size()));
}

/// Plain greedy pivoting on the stored matrix.
LowRankFactor naive(const MatrixXd& M, Index rank) {
  LowRankFactor out;
  MatrixXd left = M;
  MatrixXd L(M.rows(), rank);
  for (Index j = 0; j < rank; ++j) {
    Index pivot = 0;
    left.diagonal().maxCoeff(&pivot);
    L.col(j) = left.col(pivot) / std::sqrt(left(pivot, pivot));
    left -= times(L.col(j), L.col(j).transpose());
    left.row(pivot).setZero();
    left.col(pivot).setZero();
    out.pivots.push_back(pivot);
  }
  out.L = as_matrix(L);
  out.residual.assign(left.rows(), 0.0);
  Eigen::Map<VectorXd>(out.residual.data(), left.rows()) = left.diagonal();
  out.trace = M.trace();
  return out;
}

/// B A^-1 B^T with the diagonal of M, from the pivots alone.
MatrixXd corrected(const MatrixXd& M, const std::vector<Index>& pivots) {
  const MatrixXd B = M(Eigen::all, pivots);
  const MatrixXd A = M(pivots, pivots);
  MatrixXd out = times(B, solution(A, B.transpose()));
  out.diagonal() = M.diagonal();
  return out;
}

}  // namespace

TEST_CASE("with one pivot per pass, pivots and factor are those of greedy pivoting") {
  const Matrix<double> X = as_matrix(Random(1).matrix(700, 3));
  const OwnKernel kernel(0.5, 2.0);
  const MatrixXd M = kernel_matrix(kernel, rows_of(X), rows_of(X));
  const LowRankFactor expected = naive(M, 60);
  const LowRankFactor factor = incomplete_cholesky(kernel, rows_of(X), 60, 0.0, one, 1);
  CHECK(factor.pivots == expected.pivots);
  CHECK(factor.pivots.front() == 0);  // all residuals are equal at first
  CHECK(relative_error(dense(factor.L.view()), dense(expected.L.view())) < 1e-11);
  CHECK((as_vector(factor.residual) - as_vector(expected.residual)).cwiseAbs().maxCoeff() < 1e-11);
  CHECK(factor.trace == doctest::Approx(1400.0));
  CHECK(factor.missing() == doctest::Approx(as_vector(expected.residual).sum() / 1400.0));
}

TEST_CASE("in passes, each pivot is within a factor of two of the greedy choice and the trace is nearly as small") {
  const Matrix<double> X = as_matrix(Random(2).matrix(1500, 3));
  const OwnKernel kernel(0.4, 1.0);
  const MatrixXd M = kernel_matrix(kernel, rows_of(X), rows_of(X));
  const LowRankFactor greedy = naive(M, 150);
  for (const Index pass : {2, 8, 64}) {
    CAPTURE(pass);
    const LowRankFactor factor = incomplete_cholesky(kernel, rows_of(X), 150, 0.0, one, pass);
    REQUIRE(factor.rank() == 150);
    const MatrixXd L = dense(factor.L.view());
    VectorXd residual = M.diagonal();
    for (Index j = 0; j < 150; ++j) {
      CHECK(residual[factor.pivots[static_cast<std::size_t>(j)]] > 0.499 * residual.maxCoeff());
      residual -= L.col(j).cwiseAbs2();
    }
    CHECK((residual - as_vector(factor.residual)).cwiseAbs().maxCoeff() < 1e-12);
    CHECK(factor.missing() < 1.2 * as_vector(greedy.residual).sum() / greedy.trace);
    MatrixXd approximation = times(L, L.transpose());
    approximation.diagonal() = M.diagonal();
    CHECK(relative_error(approximation, corrected(M, factor.pivots)) < 1e-10);
  }
}

TEST_CASE("the factor is that of its pivots, whose rows are lower triangular") {
  const Matrix<double> X = as_matrix(Random(3).matrix(90, 4));
  const OwnKernel kernel(0.7, 1.5);
  const MatrixXd M = kernel_matrix(kernel, rows_of(X), rows_of(X));
  const LowRankFactor factor = incomplete_cholesky(kernel, rows_of(X), 25, 0.0, one);
  REQUIRE(factor.rank() == 25);
  CHECK(factor.L.cols() == 25);
  CHECK(factor.max_rank == 25);
  const MatrixXd L = dense(factor.L.view());
  const MatrixXd triangle = L(factor.pivots, Eigen::all);
  CHECK(identical(triangle, triangle.triangularView<Eigen::Lower>().toDenseMatrix()));
  CHECK(relative_error(times(L, triangle.transpose()), M(Eigen::all, factor.pivots)) < 1e-13);
  for (const Index p : factor.pivots) CHECK(factor.residual[static_cast<std::size_t>(p)] == 0.0);
  CHECK(as_vector(factor.residual).minCoeff() >= 0.0);

  const MatrixXd S = Random(4).matrix(90, 5);
  const MatrixXd coefficients = dense(basis_coefficients(factor, as_matrix(S).view()).view());
  const MatrixXd expected = solution(triangle.transpose(), times(L.transpose(), S));
  CHECK(relative_error(coefficients, expected) < 1e-11);
}

TEST_CASE("full rank reproduces the matrix, and limits the rank") {
  const Matrix<double> X = as_matrix(Random(5).matrix(40, 6));
  const OwnKernel kernel(0.6, 3.0);
  const MatrixXd M = kernel_matrix(kernel, rows_of(X), rows_of(X));
  const LowRankFactor factor = incomplete_cholesky(kernel, rows_of(X), 1000, 0.0, one);
  CHECK(factor.rank() == 40);
  CHECK(factor.missing() == 0.0);
  const MatrixXd L = dense(factor.L.view());
  CHECK(relative_error(times(L, L.transpose()), M) < 1e-14);
}

TEST_CASE("the rank is the smallest that meets the tolerance") {
  const Matrix<double> X = as_matrix(Random(6).matrix(800, 2));
  const OwnKernel kernel(0.5, 1.0);
  for (const Index pass : {1, 64}) {
    const LowRankFactor factor = incomplete_cholesky(kernel, rows_of(X), 800, 1e-3, one, pass);
    CHECK(factor.rank() > 5);
    CHECK(factor.missing() <= 1e-3);
    const LowRankFactor less = incomplete_cholesky(kernel, rows_of(X), factor.rank() - 1, 1e-3, one, pass);
    CHECK(less.rank() == factor.rank() - 1);
    CHECK(less.missing() > 1e-3);
  }
}

TEST_CASE("duplicate rows and nearly singular kernels end the factorization early") {
  MatrixXd points = Random(7).matrix(600, 3);
  for (Index i = 20; i < 600; ++i) points.row(i) = points.row(i % 20);
  const Matrix<double> X = as_matrix(points);
  const OwnKernel kernel(0.5, 1.0);
  const LowRankFactor factor = incomplete_cholesky(kernel, rows_of(X), 300, 0.0, one);
  CHECK(factor.rank() == 20);
  CHECK(factor.missing() < 1e-13);
  std::vector<Index> sorted = factor.pivots;
  std::sort(sorted.begin(), sorted.end());
  CHECK(sorted.back() == 19);  // ties go to the smaller index

  const Matrix<double> Y = as_matrix(Random(8).matrix(600, 2));
  for (const Index pass : {1, 64}) {
    const LowRankFactor flat = incomplete_cholesky(OwnKernel(30.0, 1.0), rows_of(Y), 600, 0.0, one, pass);
    CHECK(flat.rank() < 60);
    CHECK(dense(flat.L.view()).allFinite());
    CHECK(flat.missing() < 1e-12);
    const MatrixXd L = dense(flat.L.view());
    const MatrixXd M = kernel_matrix(OwnKernel(30.0, 1.0), rows_of(Y), rows_of(Y));
    CHECK((times(L, L.transpose()) - M).cwiseAbs().maxCoeff() < 1e-11);
    CHECK(dense(basis_coefficients(flat, as_matrix(M).view()).view()).allFinite());
  }
}

TEST_CASE("a kernel rounded to single precision is factorized down to its noise, an indefinite one is refused") {
  const Matrix<double> Y = as_matrix(Random(9).matrix(400, 2));
  const MatrixXd M = kernel_matrix(OwnKernel(1.0, 1.0), rows_of(Y), rows_of(Y));
  const Matrix<double> rounded = as_matrix(M.cast<float>().cast<double>());
  const LowRankFactor factor = incomplete_cholesky(MatrixKernel(), rows_of(rounded), 400, 0.0, one);
  const MatrixXd L = dense(factor.L.view());
  CHECK(L.allFinite());
  CHECK(factor.rank() > 20);
  CHECK((times(L, L.transpose()) - M).cwiseAbs().maxCoeff() < 1e-4);

  MatrixXd indefinite = M;
  indefinite(0, 200) = indefinite(200, 0) = 2.0;
  const Matrix<double> wrong = as_matrix(indefinite);
  CHECK(contains(rejection([&] { incomplete_cholesky(MatrixKernel(), rows_of(wrong), 400, 0.0, one); }),
                 "not positive semidefinite"));
  indefinite(0, 200) = indefinite(200, 0) = std::numeric_limits<double>::quiet_NaN();
  const Matrix<double> broken = as_matrix(indefinite);
  CHECK(
      contains(rejection([&] { incomplete_cholesky(MatrixKernel(), rows_of(broken), 400, 0.0, one); }), "not finite"));
  indefinite(5, 5) = -1.0;
  const Matrix<double> negative = as_matrix(indefinite);
  CHECK(contains(rejection([&] { incomplete_cholesky(MatrixKernel(), rows_of(negative), 400, 0.0, one); }),
                 "kernel of row 5 with itself is -1"));
}

TEST_CASE("the factor is the same on two threads, and the monitor can stop it") {
  const Matrix<double> X = as_matrix(Random(10).matrix(1300, 5));
  const OwnKernel kernel(0.8, 1.0);
  const LowRankFactor a = incomplete_cholesky(kernel, rows_of(X), 130, 0.0, one);
  const LowRankFactor b = incomplete_cholesky(kernel, rows_of(X), 130, 0.0, two);
  CHECK(a.pivots == b.pivots);
  CHECK(identical(dense(a.L.view()), dense(b.L.view())));
  CHECK(a.residual == b.residual);
  Monitor monitor;
  monitor.stop();
  CHECK_THROWS_AS(incomplete_cholesky(kernel, rows_of(X), 130, 0.0, Execution{2, &monitor}), Interrupted);
}

TEST_CASE("a kernel that is zero has rank zero") {
  const Matrix<double> zero(7, 7);
  LowRank<double> op(std::make_shared<MatrixKernel>(), zero.view(), 3, 0.0, one);
  CHECK(op.rank() == 0);
  CHECK(op.missing() == 0.0);
  const MatrixXd S = Random(11).matrix(7, 2);
  CHECK(identical(apply<double>(op, S, nullptr, one), MatrixXd::Zero(7, 2)));
  CHECK(identical(apply_cross<double>(op, zero.view(), S, one), MatrixXd::Zero(7, 2)));
}

TEST_CASE_TEMPLATE("apply is M~ S + 1 shift^T, diag the diagonal of M", T, float, double) {
  const Matrix<double> X = as_matrix(Random(12).matrix(600, 4));
  const auto kernel = std::make_shared<OwnKernel>(0.8, 1.25);
  const MatrixXd M = kernel_matrix(*kernel, rows_of(X), rows_of(X));
  LowRank<T> op(kernel, X.view(), 70, 0.0, one);
  CHECK(op.rows() == 600);
  CHECK(op.rank() == 70);
  CHECK(op.parameters() == 2);
  CHECK(op.algorithm() == "low_rank");
  CHECK(op.missing() == op.factor()->missing());
  const MatrixXd expected = corrected(M, op.factor()->pivots);
  LowRank<T> shared(kernel, X.view(), op.factor(), one);
  Random random(13);
  for (const Index m : {1, 3, 17, 140}) {
    const MatrixXd S = random.matrix(600, m);
    const VectorXd shift = random.matrix(m, 1);
    const std::vector<T> shift_values(shift.data(), shift.data() + m);
    const MatrixXd product = apply<T>(op, S, nullptr, one);
    CHECK(relative_error(product, times(expected, S)) < 100 * rounding<T>);
    CHECK(identical(product, apply<T>(op, S, nullptr, two)));
    CHECK(identical(product, apply<T>(shared, S, nullptr, one)));
    const MatrixXd shifted = times(expected, S).rowwise() + shift.transpose();
    CHECK(relative_error(apply(op, S, shift_values.data(), one), shifted) < 100 * rounding<T>);
  }
  std::vector<double> diag(600);
  op.diag(diag.data());
  CHECK(relative_error(as_vector(diag), M.diagonal()) == 0.0);
}

TEST_CASE_TEMPLATE("apply_cross is M(X*, X_I) A^-1 M(X_I, X) S", T, float, double) {
  const Matrix<double> X = as_matrix(Random(14).matrix(300, 4));
  const Matrix<double> fresh = as_matrix(Random(15).matrix(333, 4));
  const auto kernel = std::make_shared<OwnKernel>(0.9, 2.0);
  LowRank<T> op(kernel, X.view(), 40, 0.0, one);
  const InputRows basis = op.basis();
  const MatrixXd A = kernel_matrix(*kernel, basis, basis);
  const MatrixXd S = Random(16).matrix(300, 6);
  const MatrixXd expected = times(kernel_matrix(*kernel, rows_of(fresh), basis),
                                  solution(A, times(kernel_matrix(*kernel, basis, rows_of(X)), S)));
  const MatrixXd product = apply_cross<T>(op, fresh.view(), S, one);
  CHECK(relative_error(product, expected) < (sizeof(T) == 4 ? 1e-6 : 1e-10));
  CHECK(identical(product, apply_cross<T>(op, fresh.view(), S, two)));
}

TEST_CASE_TEMPLATE("bilinear_grad is the derivative of tr(E^T M~ F) with the pivots fixed", T, float, double) {
  const Matrix<double> X = as_matrix(Random(17).matrix(300, 3));
  const MatrixXd E = Random(18).matrix(300, 4);
  const MatrixXd F = Random(19).matrix(300, 4);
  const double length = 0.6;
  const double variance = 1.75;
  LowRank<T> op(std::make_shared<OwnKernel>(length, variance), X.view(), 80, 0.0, one);
  REQUIRE(op.rank() == 80);
  const auto value = [&](double log_length, double log_variance) {
    const OwnKernel kernel(length * std::exp(log_length), variance * std::exp(log_variance));
    const MatrixXd M = kernel_matrix(kernel, rows_of(X), rows_of(X));
    return bilinear(E, corrected(M, op.factor()->pivots), F);
  };
  const double step = 1e-4;
  const double by_length = (value(step, 0.0) - value(-step, 0.0)) / (2.0 * step);
  const double by_variance = (value(0.0, step) - value(0.0, -step)) / (2.0 * step);
  const Padded<T> left(E), right(F);
  std::vector<double> gradient(2, 99.0), again(2);
  op.bilinear_grad(left.view(), right.view(), gradient.data(), one);
  CHECK(gradient[0] == doctest::Approx(by_length).epsilon(1e-6));
  CHECK(gradient[1] == doctest::Approx(by_variance).epsilon(1e-6));
  op.bilinear_grad(left.view(), right.view(), again.data(), two);
  CHECK(gradient == again);
}

TEST_CASE("bilinear_grad crosses the borders of its segments") {
  const Matrix<double> X = as_matrix(Random(20).matrix(4300, 2));
  const MatrixXd E = Random(21).matrix(4300, 2);
  const auto kernel = std::make_shared<OwnKernel>(0.6, 1.5);
  LowRank<double> op(kernel, X.view(), 70, 0.0, one);
  REQUIRE(op.rank() == 70);
  std::vector<double> gradient(2);
  op.bilinear_grad(as_matrix(E).view(), as_matrix(E).view(), gradient.data(), one);
  // M~ is proportional to the variance.
  CHECK(gradient[1] == doctest::Approx(E.cwiseProduct(apply<double>(op, E, nullptr, one)).sum()).epsilon(1e-9));
}

TEST_CASE_TEMPLATE("a subset is factorized by itself, in the order of its rows", T, float, double) {
  const MatrixXd points = Random(22).matrix(200, 3);
  const Matrix<double> X = as_matrix(points);
  const auto kernel = std::make_shared<OwnKernel>(0.7, 1.0);
  LowRank<T> whole(kernel, X.view(), 30, 0.0, one);
  const MatrixXd all = Random(24).matrix(200, 2);
  const MatrixXd before = apply<T>(whole, all, nullptr, one);
  std::vector<Index> chosen;
  for (Index i = 0; i < 90; ++i) chosen.push_back((i * 67 + 5) % 200);
  const auto held = whole.subset(chosen, one);
  auto& op = dynamic_cast<LowRank<T>&>(*held);
  const Matrix<double> subset = as_matrix(points(chosen, Eigen::all));
  LowRank<T> direct(kernel, subset.view(), 30, 0.0, one);
  CHECK(op.rows() == 90);
  CHECK(op.factor()->pivots == direct.factor()->pivots);
  const MatrixXd S = Random(23).matrix(90, 3);
  CHECK(identical(apply<T>(op, S, nullptr, one), apply<T>(direct, S, nullptr, one)));
  CHECK(identical(apply_cross<T>(op, X.view(), S, one), apply_cross<T>(direct, X.view(), S, one)));
  const Padded<T> padded(S);
  std::vector<double> gradient(2), expected(2);
  op.bilinear_grad(padded.view(), padded.view(), gradient.data(), one);
  direct.bilinear_grad(padded.view(), padded.view(), expected.data(), one);
  CHECK(gradient == expected);
  CHECK(op.basis().selected.front() == chosen[static_cast<std::size_t>(op.factor()->pivots.front())]);

  CHECK(contains(rejection([&] { whole.subset({}, one); }), "rows is empty"));
  CHECK(contains(rejection([&] { whole.subset({1, 1}, one); }), "rows contains 1 twice"));
  CHECK(contains(rejection([&] { whole.subset({1, 200}, one); }), "rows contains 200"));
  CHECK(whole.rows() == 200);
  CHECK(identical(apply<T>(whole, all, nullptr, one), before));
}

TEST_CASE("low rank says what is wrong") {
  const Matrix<double> X = as_matrix(Random(24).matrix(9, 2));
  const OwnKernel kernel(1.0, 1.0);
  const auto refused = [&](Index rank, double tolerance, Index pass) {
    return rejection([&] { incomplete_cholesky(kernel, rows_of(X), rank, tolerance, one, pass); });
  };
  CHECK(contains(refused(0, 0.0, 1), "max_rank is 0"));
  CHECK(contains(refused(3, -0.5, 1), "tolerance is -0.5"));
  CHECK(contains(refused(3, 1.0, 1), "tolerance is 1"));
  CHECK(contains(refused(3, std::numeric_limits<double>::quiet_NaN(), 1), "tolerance is"));
  CHECK(contains(refused(3, 0.0, 0), "pass is 0"));
  const auto factor = std::make_shared<LowRankFactor>(incomplete_cholesky(kernel, rows_of(X), 3, 0.0, one));
  const Matrix<double> other(8, 2);
  CHECK(contains(rejection([&] { LowRank<double>(std::make_shared<OwnKernel>(1.0, 1.0), other.view(), factor, one); }),
                 "factor has 9 rows, expected 8"));
  LowRank<double> op(std::make_shared<OwnKernel>(1.0, 1.0), X.view(), factor, one);
  Matrix<double> S(9, 2), out(9, 3);
  CHECK(contains(rejection([&] { op.apply(S.view(), out.view(), nullptr, one); }), "out has shape (9, 3)"));
}
