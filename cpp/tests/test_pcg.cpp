#include <doctest/doctest.h>

#include "problems.hpp"
#include "taxolearn/solver/pcg.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

/// Symmetric positive definite, badly scaled, but well conditioned once its diagonal is one.
MatrixXd scaled_matrix(Index size) {
  const MatrixXd B = Random(1).matrix(size, size / 2);
  const MatrixXd A = MatrixXd::Identity(size, size) + B * B.transpose() / static_cast<double>(size);
  const VectorXd scale = VectorXd::LinSpaced(size, 0.0, 3.0).unaryExpr([](double x) { return std::pow(10.0, x); });
  return scale.asDiagonal() * A * scale.asDiagonal();
}

LinearSystem system_of(const MatrixXd& A, double tolerance) {
  LinearSystem system;
  system.apply = [&A](const double* x, double* out) {
    Eigen::Map<VectorXd>(out, A.rows()) = A * Eigen::Map<const VectorXd>(x, A.rows());
  };
  system.is_accurate = [&A, tolerance](const double* residual, int) {
    return Eigen::Map<const VectorXd>(residual, A.rows()).norm() <= tolerance;
  };
  return system;
}

}  // namespace

TEST_CASE("pcg solves what Cholesky solves, with and without a preconditioner") {
  const Index size = 40;
  const MatrixXd A = scaled_matrix(size);
  const VectorXd exact = Random(2).matrix(size, 1);
  const VectorXd b = A * exact;
  PcgWorkspace workspace(size);
  VectorXd x = VectorXd::Constant(size, 9.0);  // must not matter

  LinearSystem system = system_of(A, 1e-10 * b.norm());
  const PcgResult plain = pcg(system, b.data(), x.data(), size, 4000, workspace, one);
  CHECK(plain.converged);
  CHECK((b - A * x).norm() <= 1e-9 * b.norm());

  system.precondition = [&](const double* residual, double* out) {
    Eigen::Map<VectorXd>(out, size) = Eigen::Map<const VectorXd>(residual, size).cwiseQuotient(A.diagonal());
  };
  const PcgResult diagonal = pcg(system, b.data(), x.data(), size, 4000, workspace, one);
  CHECK(diagonal.converged);
  CHECK(diagonal.iterations < 30);
  CHECK(diagonal.iterations < plain.iterations);
  CHECK(relative_error(x, solution(A, b)) < 1e-6);

  system.precondition = [&](const double* residual, double* out) {
    Eigen::Map<VectorXd>(out, size) = solution(A, Eigen::Map<const VectorXd>(residual, size));
  };
  CHECK(pcg(system, b.data(), x.data(), size, 4000, workspace, one).iterations <= 2);
  CHECK(relative_error(x, exact) < 1e-8);
}

TEST_CASE("pcg stops at its limit, and reports whether the residual was small enough") {
  const Index size = 40;
  const MatrixXd A = scaled_matrix(size);
  const VectorXd b = A * VectorXd::Ones(size);
  PcgWorkspace workspace(size);
  VectorXd x(size);
  LinearSystem system = system_of(A, 0.0);
  int products = 0;
  int asked = 0;
  system.apply = [&, apply = system.apply](const double* from, double* out) {
    ++products;
    apply(from, out);
  };
  system.is_accurate = [&](const double* residual, int iterations) {
    CHECK(iterations == products);
    CHECK((Eigen::Map<const VectorXd>(residual, size) - (b - A * x)).norm() < 1e-10 * b.norm());
    ++asked;
    return false;
  };
  const PcgResult result = pcg(system, b.data(), x.data(), size, 7, workspace, one);
  CHECK(result.iterations == 7);
  CHECK(products == 7);
  CHECK(asked == 8);
  CHECK_FALSE(result.converged);

  system.is_accurate = [](const double*, int iterations) { return iterations == 3; };
  products = 0;
  CHECK(pcg(system, b.data(), x.data(), size, 7, workspace, one).converged);
  CHECK(products == 3);
}

TEST_CASE("pcg has nothing to do for a zero right-hand side and gives up on an indefinite matrix") {
  const VectorXd zero = VectorXd::Zero(3);
  const VectorXd b = VectorXd::Ones(3);
  PcgWorkspace workspace(3);
  VectorXd x = VectorXd::Ones(3);
  const MatrixXd A = -MatrixXd::Identity(3, 3);
  const PcgResult nothing = pcg(system_of(A, 1e-12), zero.data(), x.data(), 3, 10, workspace, one);
  CHECK(nothing.converged);
  CHECK(nothing.iterations == 0);
  CHECK(x.norm() == 0.0);
  const PcgResult indefinite = pcg(system_of(A, 1e-12), b.data(), x.data(), 3, 10, workspace, one);
  CHECK_FALSE(indefinite.converged);
  CHECK(indefinite.iterations == 1);
  CHECK(x.norm() == 0.0);
}

TEST_CASE("pcg gives the same bits on two threads") {
  const Index size = 9000;
  const VectorXd diagonal = Random(3).matrix(size, 1).array() + 2.0;
  const VectorXd b = Random(4).matrix(size, 1);
  LinearSystem system;
  system.apply = [&](const double* x, double* out) {
    Eigen::Map<VectorXd>(out, size) = diagonal.cwiseProduct(Eigen::Map<const VectorXd>(x, size));
  };
  system.is_accurate = [&](const double* residual, int) {
    return Eigen::Map<const VectorXd>(residual, size).norm() <= 1e-12;
  };
  PcgWorkspace workspace(size);
  VectorXd x(size), y(size);
  CHECK(pcg(system, b.data(), x.data(), size, 100, workspace, one).converged);
  pcg(system, b.data(), y.data(), size, 100, workspace, Execution{2, nullptr});
  CHECK(relative_error(x, b.cwiseQuotient(diagonal)) < 1e-12);
  CHECK(identical(x, y));
}
