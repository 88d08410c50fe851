#include "trees.hpp"

#include <doctest/doctest.h>

namespace taxolearn::tests {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

}  // namespace

MatrixXd paths(const Taxonomy& taxonomy) {
  MatrixXd out = MatrixXd::Zero(taxonomy.classes(), taxonomy.nodes());
  for (Index c = 0; c < taxonomy.classes(); ++c) {
    for (Index node = taxonomy.inner() + c; node >= 0; node = taxonomy.parent(node)) out(c, node) = 1.0;
  }
  return out;
}

MatrixXd dense_root(const Taxonomy& taxonomy, const TiedVariances& tied) {
  const Eigen::Map<const VectorXd> v(tied.variances.data(), taxonomy.nodes());
  const MatrixXd scaled = paths(taxonomy) * v.cwiseSqrt().asDiagonal();
  return scaled.rightCols(taxonomy.nodes() - 1);
}

void check_products(const Coupling& coupling, const MatrixXd& R, std::uint64_t seed) {
  constexpr Index rows = 35;  // full vectors of rows and a rest, whatever their length
  const Index C = R.rows();
  const MatrixXd G = R * R.transpose();
  REQUIRE(coupling.classes() == C);
  REQUIRE(coupling.factors() == R.cols());
  Random random(seed);
  const MatrixXd S = random.matrix(rows, C), A = random.matrix(rows, R.cols());
  Matrix<double> in_double = as_matrix(S), roots(rows, R.cols()), classes(rows, C);
  coupling.apply(rows, in_double.data());
  CHECK(relative_error(dense(in_double.view()), S * G) < rounding<double>);
  Matrix<float> in_single(rows, C);
  for (Index i = 0; i < rows; ++i)
    for (Index c = 0; c < C; ++c) in_single.row(i)[c] = static_cast<float>(S(i, c));
  coupling.apply(rows, in_single.data());
  CHECK(relative_error(dense(in_single.view()), S * G) < rounding<float>);
  coupling.to_factors(rows, as_matrix(S).data(), roots.data());
  CHECK(relative_error(dense(roots.view()), S * R) < rounding<double>);
  coupling.from_factors(rows, as_matrix(A).data(), classes.data());
  CHECK(relative_error(dense(classes.view()), A * R.transpose()) < rounding<double>);
  VectorXd diagonal(C);
  coupling.diag(diagonal.data());
  CHECK(relative_error(diagonal, G.diagonal()) < rounding<double>);
}

CoupledProblem::CoupledProblem(const DenseProblem& flat_, const MatrixXd& R) : flat(flat_) {
  const Index n = flat.Z.rows(), d = flat.Z.cols() - 1, C = R.rows(), roots = R.cols();
  A = MatrixXd::Zero(n * C, d * roots + C);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < d; ++j) A.block(i * C, j * roots, C, roots) = flat.Z(i, j) * R;
    A.block(i * C, d * roots, C, C) = flat.Z(i, d) * MatrixXd::Identity(C, C);
  }
}

MatrixXd CoupledProblem::predictors(const VectorXd& w) const {
  const VectorXd u = A * w;
  return Eigen::Map<const RowMajor>(u.data(), flat.Y.rows(), flat.Y.cols());
}

VectorXd CoupledProblem::flattened(const MatrixXd& u) const {
  const RowMajor rows = u;
  return Eigen::Map<const VectorXd>(rows.data(), rows.size());
}

double CoupledProblem::objective(const VectorXd& w) const { return flat.loss(predictors(w)) + 0.5 * w.squaredNorm(); }

VectorXd CoupledProblem::gradient(const VectorXd& w) const {
  return w + A.transpose() * flattened(flat.residual(predictors(w)));
}

VectorXd CoupledProblem::minimizer() const {
  const Index C = flat.Y.cols();
  VectorXd w = VectorXd::Zero(A.cols());
  for (int k = 0; k < 60; ++k) {
    const MatrixXd pi = softmax(predictors(w));
    MatrixXd H = MatrixXd::Identity(w.size(), w.size());
    for (Index i = 0; i < pi.rows(); ++i) {
      const MatrixXd block = A.middleRows(i * C, C);
      const MatrixXd diagonal = pi.row(i).asDiagonal();
      H += flat.s[i] * block.transpose() * (diagonal - pi.row(i).transpose() * pi.row(i)) * block;
    }
    const VectorXd g = gradient(w);
    const VectorXd step = solution(H, g);
    double length = 1.0;
    while (length > 1e-8 && objective(w - length * step) > objective(w)) length *= 0.5;
    w -= length * step;
    if (g.norm() < 1e-14) break;
  }
  return w;
}

}  // namespace taxolearn::tests
