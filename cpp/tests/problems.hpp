// Problems that the tests share, made from seeds, and slow obvious answers to compare with.
//
// All values are exact in single precision, so that every type of input holds the same numbers. What needs Eigen's
// algorithms is in problems.cpp: the compiler would work on it again for every test that includes this.
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
#include "taxolearn/base/parallel.hpp"
#include "taxolearn/data/input.hpp"

namespace taxolearn::tests {

using Eigen::MatrixXd;
using Eigen::VectorXd;

inline const Execution one{1, nullptr};
inline const Execution two{2, nullptr};

// ---- Comparing
// -------------------------------------------------------------------------------------------------------

/// |a - b| / |b|; not a number where a or b has one.
double relative_error(const MatrixXd& a, const MatrixXd& b);

bool identical(const MatrixXd& a, const MatrixXd& b);

/// A B.
MatrixXd times(const MatrixXd& A, const MatrixXd& B);

/// tr(E^T M F).
double bilinear(const MatrixXd& E, const MatrixXd& M, const MatrixXd& F);

/// A^-1 B, by elimination.
MatrixXd solution(const MatrixXd& A, const MatrixXd& B);

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
  MatrixXd matrix(Index rows, Index cols);

  std::vector<std::int32_t> labels(Index rows, Index classes) {
    std::vector<std::int32_t> out(static_cast<std::size_t>(rows));
    for (std::int32_t& label : out) label = static_cast<std::int32_t>(below(classes));
    return out;
  }

  /// Rows are distributions, some of them with zeros.
  MatrixXd targets(Index rows, Index classes);

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
  Inputs(Index rows, Index cols, Index per_row, std::uint64_t seed);
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

MatrixXd one_hot(const std::vector<std::int32_t>& labels, Index classes);
VectorXd log_sum_exp(const MatrixXd& u);
MatrixXd log_softmax(const MatrixXd& u);
MatrixXd softmax(const MatrixXd& u);

/// Phi(W) = sum_i s_i (logsumexp(u_i) - y_i . u_i) + 1/2 |W|^2 with u = Z W, Z = [sqrt(variance) X, sigma 1].
struct DenseProblem {
  MatrixXd Z;  ///< n x (d + 1)
  MatrixXd Y;  ///< n x C
  VectorXd s;  ///< n

  DenseProblem(const MatrixXd& X, const MatrixXd& targets, const VectorXd& weights, double variance,
               double intercept_variance);

  MatrixXd kernel() const;

  double loss(const MatrixXd& u) const;
  MatrixXd residual(const MatrixXd& u) const;

  double objective(const MatrixXd& W) const;
  MatrixXd gradient(const MatrixXd& W) const;

  /// -f*(r) - 1/2 |Z^T r|^2 at r = residual(Z W), where f*(r) = sum_i s_i sum_c pi_ic log pi_ic.
  double dual(const MatrixXd& W) const;

  /// Newton's method with the full Hessian and halved steps.
  MatrixXd minimizer() const;
};

}  // namespace taxolearn::tests
