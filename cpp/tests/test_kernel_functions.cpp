#include "kernel_cases.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

TEST_CASE_TEMPLATE("matrices, dense and sparse, in every mixture of types", T, float, double) {
  const Inputs train(37, features, 3, 1), fresh(70, features, 2, 2);
  for (const Case& kernel : cases()) {
    CAPTURE(kernel.name);
    const MatrixXd cross = expected(kernel, fresh.X, train.X);
    const MatrixXd square = expected(kernel, train.X, train.X);
    for (const InputView& right : train.views) {
      CAPTURE(right.index());
      const InputRows rows{right, {}};
      const MatrixXd symmetric = matrix<T>(*kernel.kernel(), rows, rows);
      CHECK(largest_error<T>(symmetric, square) < accuracy<T>);
      CHECK(identical(symmetric, symmetric.transpose()));
      for (const InputView& left : fresh.views) {
        CAPTURE(left.index());
        CHECK(largest_error<T>(matrix<T>(*kernel.kernel(), {left, {}}, rows), cross) < accuracy<T>);
      }
    }
  }
}

TEST_CASE_TEMPLATE("selected rows, blocks within, and their symmetry", T, float, double) {
  const Inputs inputs(300, features, 3, 3);
  std::vector<Index> some(200);
  for (std::size_t k = 0; k < some.size(); ++k) some[k] = static_cast<Index>((k * 7 + 5) % 300);
  const MatrixXd X = pick_rows(inputs.X, some);
  for (const Case& kernel : cases()) {
    CAPTURE(kernel.name);
    const MatrixXd square = expected(kernel, X, X);
    for (const InputView& view : {inputs.views[1], inputs.views[2], inputs.views[4], inputs.views[5]}) {
      const InputRows rows{view, some};
      const auto entries = kernel_entries<T>(*kernel.kernel(), rows, rows, one);
      Padded<T> block(70, 97), mirrored(97, 70), diagonal(83, 83);
      entries->block(100, 3, block.view());
      CHECK(largest_error<T>(dense(block.view()), square.block(100, 3, 70, 97)) < accuracy<T>);
      CHECK(block.padding_untouched());
      entries->block(3, 100, mirrored.view());
      CHECK(identical(dense(mirrored.view()), dense(block.view()).transpose()));
      entries->block(11, 11, diagonal.view());
      CHECK(largest_error<T>(dense(diagonal.view()), square.block(11, 11, 83, 83)) < accuracy<T>);
      CHECK(identical(dense(diagonal.view()), dense(diagonal.view()).transpose()));

      const InputRows few{view, {9, 0, 299}};
      const MatrixXd cross = expected(kernel, pick_rows(inputs.X, few.selected), X);
      CHECK(largest_error<T>(matrix<T>(*kernel.kernel(), few, rows), cross) < accuracy<T>);
    }
  }
}

TEST_CASE("gradients are those of central differences") {
  const Inputs train(150, features, 3, 4), fresh(20, features, 2, 5);
  const MatrixXd Q = Random(6).matrix(20, 150);
  const Matrix<double> weights = as_matrix(Q);
  for (const Case& kernel : cases()) {
    CAPTURE(kernel.name);
    const VectorXd slow = differences(kernel, fresh.X, train.X, Q);
    const Index count = kernel.kernel()->parameters();
    REQUIRE(count == slow.size());
    for (const InputView& right : {train.views[0], train.views[3], train.views[4], train.views[5]}) {
      for (const InputView& left : {fresh.views[1], fresh.views[5]}) {
        CAPTURE(left.index());
        CAPTURE(right.index());
        VectorXd fast(count), again(count), single = VectorXd::Zero(count);
        kernel_gradient(*kernel.kernel(), {left, {}}, {right, {}}, weights.view(), fast.data(), one);
        CHECK((fast - slow).cwiseAbs().maxCoeff() < 1e-7 * (1.0 + slow.cwiseAbs().maxCoeff()));
        kernel_gradient(*kernel.kernel(), {left, {}}, {right, {}}, weights.view(), again.data(), two);
        CHECK(identical(fast, again));
        const auto entries = kernel_entries<float>(*kernel.kernel(), {left, {}}, {right, {}}, one);
        entries->gradient(0, 0, weights.view(), single.data());
        CHECK((single - slow).cwiseAbs().maxCoeff() < 1e-4 * (1.0 + slow.cwiseAbs().maxCoeff()));
      }
    }
  }
}

TEST_CASE("gradients between rows and themselves, which are at distance zero") {
  const Inputs inputs(40, features, 3, 7);
  const std::vector<Index> some{3, 8, 13, 1, 0, 39, 20, 21};  // rows 3, 8 and 13 are empty
  const MatrixXd X = pick_rows(inputs.X, some), Q = Random(8).matrix(8, 8);
  const Matrix<double> weights = as_matrix(Q);
  for (const Case& kernel : cases()) {
    CAPTURE(kernel.name);
    const VectorXd slow = differences(kernel, X, X, Q);
    for (const InputView& view : {inputs.sparse(), inputs.dense()}) {
      const InputRows rows{view, some};
      VectorXd fast(slow.size());
      kernel_gradient(*kernel.kernel(), rows, rows, weights.view(), fast.data(), one);
      CHECK((fast - slow).cwiseAbs().maxCoeff() < 1e-7 * (1.0 + slow.cwiseAbs().maxCoeff()));
      VectorXd gradient = VectorXd::Ones(slow.size()), diagonal(8);  // both add to what is there
      const VectorXd q = Q.col(0);
      kernel.kernel()->diag(rows, diagonal.data());
      CHECK(largest_error<double>(diagonal, expected(kernel, X, X).diagonal()) < 1e-14);
      kernel.kernel()->diag_gradient(rows, q.data(), gradient.data());
      const VectorXd expected_gradient = differences(kernel, X, X, MatrixXd(q.asDiagonal()));
      CHECK((gradient - VectorXd::Ones(slow.size()) - expected_gradient).cwiseAbs().maxCoeff() < 1e-7);
    }
  }
}

TEST_CASE("the derivative by an offset of zero is zero") {
  const Inputs inputs(9, features, 3, 9);
  const auto kernel = make_polynomial_kernel(3, 0.5, 0.0, 2.0);
  const Matrix<double> Q = as_matrix(Random(10).matrix(9, 9));
  const InputRows rows{inputs.sparse(), {}};
  VectorXd gradient(3);
  kernel_gradient(*kernel, rows, rows, Q.view(), gradient.data(), one);
  CHECK(gradient[1] == 0.0);
  CHECK(std::abs(gradient[0]) > 1e-3);
}

TEST_CASE_TEMPLATE("a precomputed kernel is read by rows and columns", T, float, double) {
  const MatrixXd A = Random(21).matrix(20, 5), K = times(A, A.transpose()), fresh = Random(22).matrix(7, 20);
  const Padded<double> square(K);
  const Padded<float> wide(fresh);
  const auto kernel = make_precomputed_kernel(3.0);
  const InputRows all{square.view(), {}}, some{square.view(), {4, 19, 0}}, left{wide.view(), {6, 2}};
  CHECK(largest_error<T>(matrix<T>(*kernel, all, all), 3.0 * K) < accuracy<T>);
  CHECK(largest_error<T>(matrix<T>(*kernel, some, some), 3.0 * K(some.selected, some.selected)) < accuracy<T>);
  CHECK(largest_error<T>(matrix<T>(*kernel, left, some), 3.0 * fresh(left.selected, some.selected)) < accuracy<T>);
  CHECK(largest_error<T>(matrix<T>(*kernel, left, all), 3.0 * fresh(left.selected, Eigen::all)) < accuracy<T>);
  const MatrixXd Q = Random(23).matrix(2, 3);
  const Matrix<double> weights = as_matrix(Q);
  double gradient = 0.0;
  kernel_gradient(*kernel, left, some, weights.view(), &gradient, one);
  CHECK(gradient == doctest::Approx(Q.cwiseProduct(3.0 * fresh(left.selected, some.selected)).sum()));
  VectorXd diagonal(3);
  const VectorXd q = Q.row(0).transpose();
  kernel->diag(some, diagonal.data());
  CHECK(relative_error(diagonal, VectorXd(3.0 * K.diagonal()(some.selected))) < 1e-15);
  double by_variance = 1.0;
  kernel->diag_gradient(some, q.data(), &by_variance);
  CHECK(by_variance == doctest::Approx(1.0 + q.dot(diagonal)));
}

TEST_CASE("a precomputed kernel that cannot be one") {
  const auto kernel = make_precomputed_kernel(1.0);
  const auto message = [&](const InputRows& left, const InputRows& right) {
    return rejection([&] { kernel->double_entries(left, right, one); });
  };
  MatrixXd K = MatrixXd::Identity(100, 100);
  K(90, 2) = K(2, 90) = 0.5;
  const Padded<double> good(K), wide(MatrixXd::Zero(3, 100)), narrow(MatrixXd::Zero(3, 99));
  const InputRows square{good.view(), {}}, fresh{wide.view(), {}};
  CHECK(message(square, square) == "");
  CHECK(message(fresh, square) == "");
  CHECK(message(fresh, fresh) ==
        "the precomputed kernel matrix of the training rows has shape (3, 100), expected a square matrix");
  CHECK(message({narrow.view(), {}}, square) ==
        "the rows of the precomputed kernel matrix have 99 columns, expected 100, one per training row");
  const Inputs sparse(4, 4, 2, 24);
  CHECK(contains(message({sparse.sparse(), {}}, {sparse.sparse(), {}}), "must be dense, got a sparse matrix of shape"));
  K(90, 2) = 0.25;
  const Padded<double> skew(K);
  const InputRows bad{skew.view(), {}};
  CHECK(message(bad, bad) ==
        "the precomputed kernel matrix is not symmetric and finite: entry (90, 2) is 0.25, entry (2, 90) is 0.5");
  const InputRows harmless{skew.view(), {1, 2, 3}};
  CHECK(message(harmless, harmless) == "");
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    K(90, 2) = K(2, 90) = value;
    const Padded<double> infinite(K);
    const InputRows rows{infinite.view(), {}};
    CHECK(contains(message(rows, rows), "is not symmetric and finite: entry (90, 2)"));
  }
}

TEST_CASE("the same bits on two threads") {
  const Inputs inputs(500, 40, 6, 25);
  const Matrix<double> Q = as_matrix(Random(26).matrix(500, 500));
  const auto kernel = make_sum_kernel({make_stationary_kernel(StationaryForm::rbf, std::vector<double>(40, 0.8), 1.0),
                                       make_stationary_kernel(StationaryForm::matern12, {2.0}, 0.5)});
  for (const InputView& view : {inputs.sparse(), inputs.dense()}) {
    const InputRows rows{view, {}};
    CHECK(identical(matrix<float>(*kernel, rows, rows, one), matrix<float>(*kernel, rows, rows, two)));
    VectorXd gradient(kernel->parameters()), again(kernel->parameters());
    kernel_gradient(*kernel, rows, rows, Q.view(), gradient.data(), one);
    kernel_gradient(*kernel, rows, rows, Q.view(), again.data(), two);
    CHECK(identical(gradient, again));
  }
}

TEST_CASE("errors name bad parameters and inputs") {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto rbf = [](std::vector<double> lengths, double variance) {
    return make_stationary_kernel(StationaryForm::rbf, std::move(lengths), variance);
  };
  for (const double bad : {0.0, -1.0, infinity, std::nan("")}) {
    const std::string rule = " must be positive and finite, got ";
    CHECK(contains(rejection([&] { make_linear_kernel(bad); }), "variance" + rule));
    CHECK(contains(rejection([&] { make_cosine_kernel(bad); }), "variance" + rule));
    CHECK(contains(rejection([&] { make_precomputed_kernel(bad); }), "variance" + rule));
    CHECK(contains(rejection([&] { rbf({1.0}, bad); }), "variance" + rule));
    CHECK(contains(rejection([&] { rbf({1.0, bad}, 1.0); }), "length_scales" + rule));
    CHECK(contains(rejection([&] { make_polynomial_kernel(2, bad, 0.0, 1.0); }), "scale" + rule));
    CHECK(contains(rejection([&] { make_polynomial_kernel(2, 1.0, 0.0, bad); }), "variance" + rule));
    CHECK(contains(rejection([&] { make_stationary_kernel(StationaryForm::rational_quadratic, {1.0}, 1.0, bad); }),
                   "alpha" + rule));
  }
  CHECK(rejection([&] { make_polynomial_kernel(2, 1.0, -0.5, 1.0); }) ==
        "offset must be zero or positive and finite, got -0.5");
  CHECK(rejection([&] { make_polynomial_kernel(0, 1.0, 0.0, 1.0); }) == "degree must be a positive integer, got 0");
  CHECK(contains(rejection([&] { rbf({}, 1.0); }), "length_scales is empty"));
  CHECK(rejection([&] { make_sum_kernel({make_linear_kernel(1.0)}); }) == "a sum of kernels needs at least two, got 1");
  CHECK(rejection([&] { make_product_kernel({nullptr, make_linear_kernel(1.0)}); }) ==
        "a part of the product of kernels is null");

  const Inputs inputs(5, 24, 2, 27), narrow(5, 23, 2, 28);
  const InputRows rows{inputs.sparse(), {}}, other{narrow.dense(), {}}, beyond{inputs.sparse(), {1, 5}};
  for (const auto& kernel : {make_linear_kernel(1.0), rbf({1.0}, 1.0)}) {
    CHECK(rejection([&] { kernel->single_entries(other, rows, one); }) ==
          "the left rows have 23 features, expected 24 as in the right rows");
    CHECK(rejection([&] { kernel->double_entries(rows, beyond, one); }) ==
          "right rows contain 5, expected indices in [0, 5)");
  }
  CHECK(rejection([&] { rbf({1.0, 2.0, 3.0}, 1.0)->single_entries(rows, rows, one); }) ==
        "length_scales has 3 elements, but the rows have 24 features; expected one length scale, or one per feature");
  double out[5];
  CHECK(contains(rejection([&] { rbf({1.0, 2.0}, 1.0)->diag(rows, out); }), "length_scales has 2 elements"));
  Matrix<double> small(4, 5);
  CHECK(rejection([&] { kernel_matrix<double>(*make_linear_kernel(1.0), rows, rows, small.view(), one); }) ==
        "out has shape (4, 5), expected (5, 5)");
  CHECK(rejection([&] { kernel_gradient(*make_linear_kernel(1.0), rows, rows, small.view(), out, one); }) ==
        "Q has shape (4, 5), expected (5, 5)");
}
