#include "problems.hpp"

namespace taxolearn::tests {

double relative_error(const MatrixXd& a, const MatrixXd& b) {
  if (a.rows() != b.rows() || a.cols() != b.cols()) return std::numeric_limits<double>::infinity();
  const double scale = b.norm();
  return (a - b).norm() / (scale > 0.0 ? scale : 1.0);
}

bool identical(const MatrixXd& a, const MatrixXd& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() && (a.array() == b.array()).all();
}

MatrixXd times(const MatrixXd& A, const MatrixXd& B) { return A * B; }

double bilinear(const MatrixXd& E, const MatrixXd& M, const MatrixXd& F) { return E.cwiseProduct(M * F).sum(); }

MatrixXd solution(const MatrixXd& A, const MatrixXd& B) { return A.partialPivLu().solve(B); }

MatrixXd Random::matrix(Index rows, Index cols) {
  return MatrixXd::NullaryExpr(rows, cols, [this] { return 2.0 * uniform() - 1.0; });
}

MatrixXd Random::targets(Index rows, Index classes) {
  MatrixXd out = matrix(rows, classes).cwiseMax(0.0);
  out.col(0).array() += 0.25;
  for (Index i = 0; i < rows; ++i) out.row(i) /= out.row(i).sum();
  return out;
}

Inputs::Inputs(Index rows, Index cols, Index per_row, std::uint64_t seed)
    : X(MatrixXd::Zero(rows, cols)),
      single32_(random_sparse<float, std::int32_t>(rows, cols, per_row, seed)),
      single64_(random_sparse<float, std::int64_t>(rows, cols, per_row, seed)),
      double32_(random_sparse<double, std::int32_t>(rows, cols, per_row, seed)),
      double64_(random_sparse<double, std::int64_t>(rows, cols, per_row, seed)),
      single_dense_(rows, cols),
      double_dense_(rows, cols) {
  for (Index i = 0; i < rows; ++i) {
    for (auto k = double64_.offsets[i]; k < double64_.offsets[i + 1]; ++k) {
      X(i, double64_.columns[k]) += double64_.values[k];
    }
  }
  single_dense_ = Padded<float>(X);
  double_dense_ = Padded<double>(X);
  views = {single32_.view(), single64_.view(), double32_.view(), double64_.view()};
  views.push_back(static_cast<const Padded<float>&>(single_dense_).view());
  views.push_back(static_cast<const Padded<double>&>(double_dense_).view());
}

MatrixXd one_hot(const std::vector<std::int32_t>& labels, Index classes) {
  MatrixXd out = MatrixXd::Zero(static_cast<Index>(labels.size()), classes);
  for (std::size_t i = 0; i < labels.size(); ++i) out(static_cast<Index>(i), labels[i]) = 1.0;
  return out;
}

VectorXd log_sum_exp(const MatrixXd& u) {
  const VectorXd top = u.rowwise().maxCoeff();
  return top.array() + (u.colwise() - top).array().exp().rowwise().sum().log();
}

MatrixXd log_softmax(const MatrixXd& u) { return u.colwise() - log_sum_exp(u); }
MatrixXd softmax(const MatrixXd& u) { return log_softmax(u).array().exp(); }

DenseProblem::DenseProblem(const MatrixXd& X, const MatrixXd& targets, const VectorXd& weights, double variance,
                           double intercept_variance)
    : Z(X.rows(), X.cols() + 1), Y(targets), s(weights) {
  Z << std::sqrt(variance) * X, VectorXd::Constant(X.rows(), std::sqrt(intercept_variance));
}

MatrixXd DenseProblem::kernel() const { return Z * Z.transpose(); }

double DenseProblem::loss(const MatrixXd& u) const {
  return s.dot(log_sum_exp(u) - VectorXd((Y.array() * u.array()).rowwise().sum()));
}

MatrixXd DenseProblem::residual(const MatrixXd& u) const { return s.asDiagonal() * (softmax(u) - Y); }

double DenseProblem::objective(const MatrixXd& W) const { return loss(Z * W) + 0.5 * W.squaredNorm(); }

MatrixXd DenseProblem::gradient(const MatrixXd& W) const { return W + Z.transpose() * residual(Z * W); }

double DenseProblem::dual(const MatrixXd& W) const {
  const MatrixXd pi = softmax(Z * W);
  const auto entropies = pi.array() * pi.array().max(1e-300).log();
  return -s.dot(VectorXd(entropies.rowwise().sum())) - 0.5 * (Z.transpose() * residual(Z * W)).squaredNorm();
}

MatrixXd DenseProblem::minimizer() const {
  const Index d = Z.cols();
  const Index classes = Y.cols();
  MatrixXd W = MatrixXd::Zero(d, classes);
  for (int k = 0; k < 60; ++k) {
    const MatrixXd pi = softmax(Z * W);
    MatrixXd H = MatrixXd::Identity(d * classes, d * classes);
    for (Index a = 0; a < classes; ++a) {
      for (Index b = 0; b < classes; ++b) {
        const VectorXd weights = s.array() * pi.col(a).array() * ((a == b ? 1.0 : 0.0) - pi.col(b).array());
        H.block(a * d, b * d, d, d) += Z.transpose() * weights.asDiagonal() * Z;
      }
    }
    const MatrixXd g = gradient(W);
    const MatrixXd step = solution(H, g.reshaped()).reshaped(d, classes);
    double length = 1.0;
    while (length > 1e-8 && objective(W - length * step) > objective(W)) length *= 0.5;
    W -= length * step;
    if (g.norm() < 1e-14) break;
  }
  return W;
}

}  // namespace taxolearn::tests
