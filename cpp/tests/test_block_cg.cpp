#include <doctest/doctest.h>

#include "problems.hpp"
#include "taxolearn/solver/block_cg.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
DenseView<T> view_of(RowMajor<T>& A) {
  return {A.data(), A.rows(), A.cols()};
}

template <class T>
DenseView<const T> const_view_of(const RowMajor<T>& A) {
  return {A.data(), A.rows(), A.cols()};
}

/// Symmetric, positive definite unless the rank is below the size, badly scaled.
RowMajor<double> system_matrix(Index size, Index rank) {
  const MatrixXd B = Random(1).matrix(size, rank);
  const VectorXd scale = VectorXd::LinSpaced(size, 0.0, 2.0).unaryExpr([](double x) { return std::pow(10.0, x); });
  return scale.asDiagonal() * MatrixXd(B * B.transpose()) * scale.asDiagonal();
}

template <class T>
BlockSystem<T> system_of(const RowMajor<T>& A) {
  BlockSystem<T> system;
  system.apply = [&A](DenseView<const T> X, DenseView<T> out) {
    Eigen::Map<RowMajor<T>>(out.data, out.rows, out.cols) = A * Eigen::Map<const RowMajor<T>>(X.data, X.rows, X.cols);
  };
  for (Index i = 0; i < A.rows(); ++i) system.diagonal.push_back(static_cast<double>(A(i, i)));
  return system;
}

}  // namespace

TEST_CASE_TEMPLATE("block_cg solves for all right-hand sides, in few products", T, float, double) {
  const Index size = 40, columns = 8;
  const RowMajor<T> A = system_matrix(size, 60).template cast<T>();
  const RowMajor<T> exact = Random(2).matrix(size, columns).template cast<T>();
  const RowMajor<T> B = A * exact;
  RowMajor<T> residual = B, X = RowMajor<T>::Constant(size, columns, T(9));  // must not matter
  const double tolerance = sizeof(T) == 4 ? 1e-4 : 1e-10;
  const BlockCgResult result = block_cg<T>(system_of(A), view_of(residual), view_of(X), tolerance, 100, {1, nullptr});
  CHECK(result.converged);
  CHECK(result.iterations <= 2 * size / columns);
  const RowMajor<T> left = B - A * X;
  for (Index j = 0; j < columns; ++j) CHECK(left.col(j).norm() <= 20 * tolerance * B.col(j).norm());
}

TEST_CASE("block_cg takes right-hand sides that depend on each other, are zero, or have singular systems") {
  const Index size = 30;
  for (const Index rank : {10, 50}) {
    const RowMajor<double> A = system_matrix(size, rank);
    RowMajor<double> B = A * Random(3).matrix(size, 6);
    B.col(2) = 1e6 * B.col(0);
    B.col(3).setZero();
    B.col(4) = B.col(0) + B.col(1);
    RowMajor<double> residual = B, X = B;
    const BlockCgResult result = block_cg<double>(system_of(A), view_of(residual), view_of(X), 1e-8, 200, {1, nullptr});
    CHECK(result.converged);
    CHECK(X.col(3).norm() == 0.0);
    const RowMajor<double> left = B - A * X;
    for (Index j = 0; j < B.cols(); ++j) CHECK(left.col(j).norm() <= 1e-6 * B.col(j).norm());
  }
}

TEST_CASE("block_cg stops when iterations are used up, and says so") {
  const RowMajor<double> A = system_matrix(40, 60);
  RowMajor<double> B = Random(4).matrix(40, 2), X = B;
  int reports = 0;
  BlockSystem<double> system = system_of(A);
  system.report = [&](int iterations, double residual) {
    CHECK(iterations == ++reports);
    CHECK(residual > 0.0);
  };
  const BlockCgResult result = block_cg<double>(system, view_of(B), view_of(X), 1e-12, 3, {1, nullptr});
  CHECK(!result.converged);
  CHECK(result.iterations == 3);
  CHECK(reports == 3);
}

TEST_CASE_TEMPLATE("orthonormal columns span the same space", T, float, double) {
  MatrixXd A = Random(5).matrix(1500, 9);
  A.col(4) = 2.0 * A.col(1) - A.col(7);  // one less
  A.col(6) *= 1e-6;
  A.col(8).setZero();  // one less
  const RowMajor<T> given = A.cast<T>();
  const Matrix<T> found = orthonormal<T>(const_view_of<T>(given), {2, nullptr});
  REQUIRE(found.cols() == 7);
  const MatrixXd Q = Eigen::Map<const RowMajor<T>>(found.data(), found.rows(), found.cols()).template cast<double>();
  const double rounding = sizeof(T) == 4 ? 1e-5 : 1e-12;
  CHECK((Q.transpose() * Q - MatrixXd::Identity(7, 7)).norm() < rounding);
  for (Index j = 0; j < 8; ++j) {
    const VectorXd a = given.template cast<double>().col(j);
    CHECK((a - Q * (Q.transpose() * a)).norm() <= 10 * rounding * a.norm());
  }
  CHECK(orthonormal<T>(DenseView<const T>(given.data(), 0, 9), {1, nullptr}).cols() == 0);
}
