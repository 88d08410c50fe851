#include "kernel_cases.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

TEST_CASE_TEMPLATE("rows far from the origin", T, float, double) {
  MatrixXd X = Random(11).matrix(40, features), Y = Random(12).matrix(30, features);
  X.row(7) = X.row(3);
  X.row(9) = X.row(3);
  X(9, 2) += 1e-4;
  Y.row(5) = X.row(3);
  X.array() += 1e6;
  Y.array() += 1e6;
  const Padded<double> left(Y), right(X);
  const InputRows rows{right.view(), {}}, fresh{left.view(), {}};
  for (const auto& form : forms) {
    for (const Index lengths : {Index{1}, features}) {
      const Case kernel = stationary(form.first, lengths);
      CAPTURE(kernel.name);
      const MatrixXd square = matrix<T>(*kernel.kernel(), rows, rows), cross = matrix<T>(*kernel.kernel(), fresh, rows);
      CHECK(largest_error<T>(square, expected(kernel, X, X)) < accuracy<T>);
      CHECK(largest_error<T>(cross, expected(kernel, Y, X)) < accuracy<T>);
      const double top = static_cast<double>(static_cast<T>(std::exp(kernel.theta.back())));
      CHECK(square.diagonal().isConstant(top, 1e-7));
      CHECK(square(3, 7) == square(3, 3));
      CHECK(cross(5, 3) == square(3, 3));
      CHECK((form.first == "matern12") == (square(3, 9) < square(3, 3) * (1.0 - 1e-5)));
    }
  }
}

TEST_CASE_TEMPLATE("near duplicates far from the others keep their distance", T, float, double) {
  // |x|^2 = 10^8 within the cluster, distances of 0.001: nothing of them is left in |a|^2 + |b|^2 - 2 a.b.
  MatrixXd X = 1e-3 * Random(13).matrix(20, features);
  X.topRows(10).array() += 8192.0;
  const Padded<double> values(X);
  Sparse<double, std::int32_t> sparse;
  sparse.rows = X.rows();
  sparse.cols = X.cols();
  for (Index i = 0; i < X.rows(); ++i) {
    for (Index d = 0; d < X.cols(); ++d) {
      sparse.columns.push_back(static_cast<std::int32_t>(d));
      sparse.values.push_back(X(i, d));
    }
    sparse.offsets.push_back(static_cast<std::int32_t>(sparse.values.size()));
  }
  const std::vector<InputView> views{values.view(), sparse.view()};
  for (const InputView& view : views) {
    const InputRows rows{view, {}};
    for (const auto& form : forms) {
      const auto kernel = make_stationary_kernel(form.second, {1e-3}, 1.0, 0.7);
      const MatrixXd K = matrix<T>(*kernel, rows, rows);
      const MatrixXd slow = MatrixXd::NullaryExpr(
          20, 20, [&](Index i, Index j) { return value_of(form.second, (X.row(i) - X.row(j)).norm() / 1e-3, 0.7); });
      CHECK(largest_error<T>(K.topLeftCorner(10, 10), slow.topLeftCorner(10, 10)) < 1e-5);
      CHECK(K.topRightCorner(10, 10).isApproxToConstant(slow(0, 19), 1e-5));
      if (view.index() == 5) CHECK(largest_error<T>(K, slow) < 1e-5);
    }
  }
}

TEST_CASE_TEMPLATE("extreme length scales give zeros and ones", T, float, double) {
  const Inputs inputs(60, features, 3, 14);
  const Matrix<double> Q = as_matrix(MatrixXd::Ones(60, 60));
  static const std::array<double, 6> tiny{1e-300, 1e-150, 1e-60, 1e-30, 1e-18, 1e-9};
  for (const InputView& view : {inputs.sparse(), inputs.dense()}) {
    const InputRows rows{view, {}};
    const MatrixXd equal = MatrixXd::NullaryExpr(
        60, 60, [&](Index i, Index j) { return (inputs.X.row(i) - inputs.X.row(j)).isZero(0.0) ? 1.0 : 0.0; });
    for (const auto& form : forms) {
      CAPTURE(form.first);
      for (const double length : tiny) {
        for (const Index lengths : {Index{1}, features}) {
          const auto count = static_cast<std::size_t>(lengths);
          const auto small = make_stationary_kernel(form.second, std::vector<double>(count, length), 2.0, 3.0);
          const auto large = make_stationary_kernel(form.second, std::vector<double>(count, 1.0 / length), 2.0, 3.0);
          CAPTURE(length);
          CHECK(largest_error<T>(matrix<T>(*small, rows, rows), 2.0 * equal) < 1e-12);
          CHECK(largest_error<T>(matrix<T>(*large, rows, rows), MatrixXd::Constant(60, 60, 2.0)) < 2e-8);
          for (const auto& kernel : {small, large}) {
            VectorXd gradient = VectorXd::Zero(kernel->parameters());
            kernel_entries<T>(*kernel, rows, rows, one)->gradient(0, 0, Q.view(), gradient.data());
            CHECK(gradient.allFinite());
            CHECK(gradient.head(lengths).cwiseAbs().maxCoeff() < 1e-4);
          }
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("one feature of an extreme length scale among others", T, float, double) {
  // Feature 0 has three values and tells rows apart; where it does not, the others count.
  MatrixXd X = Random(15).matrix(30, features);
  for (Index i = 0; i < 30; ++i) X(i, 0) = static_cast<double>(i % 3) - 1.0;
  X.col(5).setConstant(0.1);  // never differs
  const Padded<double> values(X);
  const InputRows rows{static_cast<const Padded<double>&>(values).view(), {}};
  const MatrixXd Q = Random(16).matrix(30, 30);
  const Matrix<double> weights = as_matrix(Q);
  for (const auto& form : forms) {
    for (const double length : {1e-300, 1e-20, 1e20, 1e300}) {
      CAPTURE(form.first);
      CAPTURE(length);
      Case rest = stationary(form.first, features);
      std::vector<double> scales;
      for (Index d = 0; d < features; ++d) scales.push_back(std::exp(rest.theta[static_cast<std::size_t>(d)]));
      scales[0] = length;
      scales[5] = 1e-200;
      const auto kernel = make_stationary_kernel(form.second, scales, std::exp(rest.theta.back()), 20.0);
      if (form.first == "rational_quadratic") rest.theta[features] = std::log(20.0);
      MatrixXd others = X;
      others.col(0).setZero();
      MatrixXd slow = expected(rest, others, others), visible = Q;
      for (Index i = 0; i < 30; ++i) {
        for (Index j = 0; j < 30; ++j) {
          if (length < 1.0 && X(i, 0) != X(j, 0)) slow(i, j) = visible(i, j) = 0.0;
        }
      }
      CHECK(largest_error<T>(matrix<T>(*kernel, rows, rows), slow) < accuracy<T>);
      VectorXd gradient = VectorXd::Zero(kernel->parameters());
      kernel_entries<T>(*kernel, rows, rows, one)->gradient(0, 0, weights.view(), gradient.data());
      CHECK(largest_error<T>(gradient, differences(rest, others, others, visible)) < 2e-5);
    }
  }
}

TEST_CASE_TEMPLATE("extreme alphas: exp(-r^2 / 2) and one", T, float, double) {
  const Inputs inputs(30, features, 3, 17);
  const InputRows rows{inputs.dense(), {}};
  const auto kernel = [](double alpha) {
    return make_stationary_kernel(StationaryForm::rational_quadratic, {0.5}, 1.0, alpha);
  };
  const MatrixXd rbf = matrix<T>(*make_stationary_kernel(StationaryForm::rbf, {0.5}, 1.0), rows, rows);
  for (const double alpha : {1e11, 1e50, 1e300}) {
    CHECK(largest_error<T>(matrix<T>(*kernel(alpha), rows, rows), rbf) < 1e-6);
  }
  for (const double alpha : {1e-9, 1e-50, 1e-300}) {
    CHECK(largest_error<T>(matrix<T>(*kernel(alpha), rows, rows), MatrixXd::Ones(30, 30)) < 1e-6);
  }
}

TEST_CASE_TEMPLATE("a constant input is at distance zero of itself", T, float, double) {
  const Padded<double> values(MatrixXd::Constant(9, 4, 0.1));
  const Padded<float> zeros(MatrixXd::Zero(9, 4));
  const Sparse<double, std::int32_t> empty{9, 4, {}, {}, std::vector<std::int32_t>(10, 0)};
  for (const InputView& view : {InputView(values.view()), InputView(zeros.view()), InputView(empty.view())}) {
    const InputRows rows{view, {}};
    for (const auto& form : forms) {
      CHECK(identical(matrix<T>(*make_stationary_kernel(form.second, {1e-3}, 2.0), rows, rows),
                      MatrixXd::Constant(9, 9, 2.0)));
    }
  }
}

TEST_CASE_TEMPLATE("no rows, no features", T, float, double) {
  for (const Index rows : {0, 3}) {
    for (const Index cols : {0, 4}) {
      if (rows > 0 && cols > 0) continue;
      const Inputs inputs(rows, cols, cols > 0 ? 2 : 0, 19);
      for (const InputView& view : inputs.views) {
        const InputRows all{view, {}};
        CHECK(matrix<T>(*make_linear_kernel(2.0), all, all).isZero(0.0));
        CHECK(matrix<T>(*make_cosine_kernel(2.0), all, all).isZero(0.0));
        const MatrixXd rbf = matrix<T>(*make_stationary_kernel(StationaryForm::rbf, {1.0}, 2.0), all, all);
        CHECK(identical(rbf, MatrixXd::Constant(rows, rows, 2.0)));
      }
    }
  }
}

TEST_CASE_TEMPLATE("cosines of huge and tiny rows", T, float, double) {
  MatrixXd X = Random(20).matrix(12, features);
  const MatrixXd slow = expected(cosine(), X, X);
  X.topRows(4) *= 1e200;
  X.bottomRows(4) *= 1e-200;
  X.row(11).setZero();
  const Padded<double> values(X);
  const InputRows rows{values.view(), {}};
  const MatrixXd K = matrix<T>(*cosine().kernel(), rows, rows);
  CHECK(largest_error<T>(K.topLeftCorner(11, 11), slow.topLeftCorner(11, 11)) < accuracy<T>);
  CHECK(K.row(11).isZero(0.0));
  VectorXd diagonal(12);
  cosine().kernel()->diag(rows, diagonal.data());
  CHECK(largest_error<double>(diagonal, VectorXd(K.diagonal())) < accuracy<T>);
}
