// Problems that the tests share, made from seeds, and slow obvious answers to compare with.
//
// All values are exact in single precision, so that every type of input holds the same numbers.
#pragma once

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/matrix.hpp"
#include "taxolearn/operators/input.hpp"

namespace taxolearn::tests {

using Eigen::MatrixXd;
using Eigen::VectorXd;

// ---- Comparing
// -------------------------------------------------------------------------------------------------------

/// |a - b| / |b|; not a number where a or b has one.
inline double relative_error(const MatrixXd& a, const MatrixXd& b) {
  if (a.rows() != b.rows() || a.cols() != b.cols()) return std::numeric_limits<double>::infinity();
  const double scale = b.norm();
  return (a - b).norm() / (scale > 0.0 ? scale : 1.0);
}

inline bool identical(const MatrixXd& a, const MatrixXd& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() && (a.array() == b.array()).all();
}

/// Error allowed to a product in precision T.
template <class T>
constexpr double rounding = sizeof(T) == sizeof(float) ? 3e-6 : 1e-14;

/// The message of the InvalidArgument that the body throws; empty if it throws none.
template <class Body>
std::string rejection(const Body& body) {
  try {
    body();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// ---- Matrices
// --------------------------------------------------------------------------------------------------------

template <class T>
MatrixXd dense(const DenseView<T>& view) {
  MatrixXd out(view.rows, view.cols);
  for (Index i = 0; i < view.rows; ++i) {
    for (Index j = 0; j < view.cols; ++j) out(i, j) = static_cast<double>(view.row(i)[j]);
  }
  return out;
}

/// A row-major matrix whose rows lie apart. What is between them is not a number, and has to stay.
template <class T>
class Padded {
 public:
  Padded(Index rows, Index cols)
      : view_(nullptr, rows, cols, cols + 3),
        data_(static_cast<std::size_t>(rows * (cols + 3)), std::numeric_limits<T>::quiet_NaN()) {}

  explicit Padded(const MatrixXd& values) : Padded(values.rows(), values.cols()) {
    for (Index i = 0; i < values.rows(); ++i) {
      for (Index j = 0; j < values.cols(); ++j) view().row(i)[j] = static_cast<T>(values(i, j));
    }
  }

  DenseView<T> view() { return {data_.data(), view_.rows, view_.cols, view_.stride}; }
  DenseView<const T> view() const { return {data_.data(), view_.rows, view_.cols, view_.stride}; }

  bool padding_untouched() const {
    for (Index i = 0; i < view_.rows; ++i) {
      for (Index j = view_.cols; j < view_.stride; ++j) {
        if (!std::isnan(view().row(i)[j])) return false;
      }
    }
    return true;
  }

 private:
  DenseView<T> view_;
  std::vector<T> data_;
};

inline Matrix<double> as_matrix(const MatrixXd& values) {
  Matrix<double> out(values.rows(), values.cols());
  for (Index i = 0; i < out.rows(); ++i) {
    for (Index j = 0; j < out.cols(); ++j) out.row(i)[j] = values(i, j);
  }
  return out;
}

template <class V, class I>
struct Sparse {
  Index rows = 0;
  Index cols = 0;
  std::vector<V> values;
  std::vector<I> columns;
  std::vector<I> offsets{0};

  SparseView<V, I> view() const { return {values.data(), columns.data(), offsets.data(), rows, cols}; }
};

// ---- Random problems
// -------------------------------------------------------------------------------------------------

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// In [0, 1), exact in single precision.
  double uniform() { return static_cast<double>(engine_() >> 41) * 0x1p-23; }
  Index below(Index end) { return static_cast<Index>(engine_() % static_cast<std::uint64_t>(end)); }

  /// Elements in [-1, 1).
  MatrixXd matrix(Index rows, Index cols) {
    return MatrixXd::NullaryExpr(rows, cols, [this] { return 2.0 * uniform() - 1.0; });
  }

  std::vector<std::int32_t> labels(Index rows, Index classes) {
    std::vector<std::int32_t> out(static_cast<std::size_t>(rows));
    for (std::int32_t& label : out) label = static_cast<std::int32_t>(below(classes));
    return out;
  }

  /// Rows are distributions, some of them with zeros.
  MatrixXd targets(Index rows, Index classes) {
    MatrixXd out = matrix(rows, classes).cwiseMax(0.0);
    out.col(0).array() += 0.25;
    for (Index i = 0; i < rows; ++i) out.row(i) /= out.row(i).sum();
    return out;
  }

  /// Every fourth is zero.
  std::vector<double> weights(Index rows) {
    std::vector<double> out(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = i % 4 == 2 ? 0.0 : 0.5 + uniform();
    return out;
  }

 private:
  std::mt19937_64 engine_;
};

/// Every fifth row is empty, every second one has an entry twice, and each of the last quarter of the columns
/// belongs to one row or to none.
template <class V, class I>
Sparse<V, I> random_sparse(Index rows, Index cols, Index per_row, std::uint64_t seed) {
  Random random(seed);
  Sparse<V, I> out;
  out.rows = rows;
  out.cols = cols;
  const Index shared = cols - cols / 4;
  for (Index i = 0; i < rows; ++i) {
    std::vector<I> columns;
    if (i % 5 != 3) {
      for (Index k = 0; k < per_row; ++k) columns.push_back(static_cast<I>(random.below(shared)));
      if (i % 2 == 0 && per_row > 0) columns.push_back(columns.front());
      if (i < cols - shared) columns.push_back(static_cast<I>(shared + i));
    }
    std::sort(columns.begin(), columns.end());
    for (const I column : columns) {
      out.columns.push_back(column);
      out.values.push_back(static_cast<V>(2.0 * random.uniform() - 1.0));
    }
    out.offsets.push_back(static_cast<I>(out.columns.size()));
  }
  return out;
}

/// The same inputs in every type, and as an Eigen matrix. Not to be copied: the views point into it.
class Inputs {
 public:
  Inputs(Index rows, Index cols, Index per_row, std::uint64_t seed)
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
  Inputs(const Inputs&) = delete;
  Inputs& operator=(const Inputs&) = delete;

  const InputView& sparse() const { return views[2]; }
  const InputView& dense() const { return views[5]; }

  MatrixXd X;
  std::vector<InputView> views;  ///< four sparse, two dense

 private:
  Sparse<float, std::int32_t> single32_;
  Sparse<float, std::int64_t> single64_;
  Sparse<double, std::int32_t> double32_;
  Sparse<double, std::int64_t> double64_;
  Padded<float> single_dense_;
  Padded<double> double_dense_;
};

// ---- Softmax regression in dense algebra
// -----------------------------------------------------------------------------

inline MatrixXd one_hot(const std::vector<std::int32_t>& labels, Index classes) {
  MatrixXd out = MatrixXd::Zero(static_cast<Index>(labels.size()), classes);
  for (std::size_t i = 0; i < labels.size(); ++i) out(static_cast<Index>(i), labels[i]) = 1.0;
  return out;
}

inline VectorXd log_sum_exp(const MatrixXd& u) {
  const VectorXd top = u.rowwise().maxCoeff();
  return top.array() + (u.colwise() - top).array().exp().rowwise().sum().log();
}

inline MatrixXd log_softmax(const MatrixXd& u) { return u.colwise() - log_sum_exp(u); }
inline MatrixXd softmax(const MatrixXd& u) { return log_softmax(u).array().exp(); }

/// Phi(W) = sum_i s_i (logsumexp(u_i) - y_i . u_i) + 1/2 |W|^2 with u = Z W, Z = [sqrt(variance) X, sigma 1].
struct DenseProblem {
  MatrixXd Z;  ///< n x (d + 1)
  MatrixXd Y;  ///< n x C
  VectorXd s;  ///< n

  DenseProblem(const MatrixXd& X, const MatrixXd& targets, const VectorXd& weights, double variance, double sigma2)
      : Z(X.rows(), X.cols() + 1), Y(targets), s(weights) {
    Z << std::sqrt(variance) * X, VectorXd::Constant(X.rows(), std::sqrt(sigma2));
  }

  MatrixXd kernel() const { return Z * Z.transpose(); }

  double loss(const MatrixXd& u) const {
    return s.dot(log_sum_exp(u) - VectorXd((Y.array() * u.array()).rowwise().sum()));
  }
  MatrixXd residual(const MatrixXd& u) const { return s.asDiagonal() * (softmax(u) - Y); }

  double objective(const MatrixXd& W) const { return loss(Z * W) + 0.5 * W.squaredNorm(); }
  MatrixXd gradient(const MatrixXd& W) const { return W + Z.transpose() * residual(Z * W); }

  /// -f*(r) - 1/2 |Z^T r|^2 at r = residual(Z W), where f*(r) = sum_i s_i sum_c pi_ic log pi_ic.
  double dual(const MatrixXd& W) const {
    const MatrixXd pi = softmax(Z * W);
    const auto entropies = pi.array() * pi.array().max(1e-300).log();
    return -s.dot(VectorXd(entropies.rowwise().sum())) - 0.5 * (Z.transpose() * residual(Z * W)).squaredNorm();
  }

  /// Newton's method with the full Hessian and halved steps.
  MatrixXd minimizer() const {
    const Index d = Z.cols();
    const Index classes = Y.cols();
    MatrixXd W = MatrixXd::Zero(d, classes);
    for (int k = 0; k < 60; ++k) {
      const MatrixXd pi = softmax(Z * W);
      MatrixXd H = MatrixXd::Identity(d * classes, d * classes);
      for (Index a = 0; a < classes; ++a) {
        for (Index b = 0; b < classes; ++b) {
          const VectorXd curve = s.array() * pi.col(a).array() * ((a == b ? 1.0 : 0.0) - pi.col(b).array());
          H.block(a * d, b * d, d, d) += Z.transpose() * curve.asDiagonal() * Z;
        }
      }
      const MatrixXd g = gradient(W);
      const VectorXd solved = H.llt().solve(g.reshaped());
      const MatrixXd step = solved.reshaped(d, classes);
      double length = 1.0;
      while (length > 1e-8 && objective(W - length * step) > objective(W)) length *= 0.5;
      W -= length * step;
      if (g.norm() < 1e-14) break;
    }
    return W;
  }
};

}  // namespace taxolearn::tests
