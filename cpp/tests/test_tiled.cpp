#include <doctest/doctest.h>

#include "operators.hpp"
#include "own_kernel.hpp"
#include "taxolearn/operators/tiled.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

constexpr double length = 1.25;
constexpr double variance = 0.75;

template <class T>
Tiled<T> make(const DenseInputs& inputs) {
  return Tiled<T>(std::make_shared<OwnKernel>(length, variance), inputs.view(), one);
}

MatrixXd exact(const MatrixXd& X, const MatrixXd& Y) { return OwnKernel(length, variance).matrix(X, Y); }

/// d/dtheta tr(E^T M(theta) F) by central differences.
VectorXd differences(const MatrixXd& X, const MatrixXd& E, const MatrixXd& F) {
  const auto trace = [&](double log_length, double log_variance) {
    return bilinear(E, OwnKernel(std::exp(log_length), std::exp(log_variance)).matrix(X, X), F);
  };
  const double h = 1e-5;
  const double l = std::log(length);
  const double v = std::log(variance);
  VectorXd out(2);
  out << trace(l + h, v) - trace(l - h, v), trace(l, v + h) - trace(l, v - h);
  return out / (2.0 * h);
}

}  // namespace

TEST_CASE_TEMPLATE("tiled: apply is M S + 1 shift^T", T, float, double) {
  for (const Index n : {Index{1}, Index{2}, tile<T> - 1, tile<T>, tile<T> + 1, 3 * tile<T> + 10}) {
    CAPTURE(n);
    const DenseInputs inputs(n, 3, 1);
    const MatrixXd M = exact(inputs.X, inputs.X);
    Tiled<T> op = make<T>(inputs);
    CHECK(op.rows() == n);
    CHECK(op.algorithm() == "tiled");
    Random random(2);
    for (const Index m : {1, 3, 17}) check_products<T>(op, M, m, random);
  }
}

TEST_CASE_TEMPLATE("tiled: apply_cross is M(Xnew, X) S", T, float, double) {
  const DenseInputs inputs(tile<T> + 20, 3, 1);
  Tiled<T> op = make<T>(inputs);
  const MatrixXd S = Random(3).matrix(inputs.X.rows(), 5);
  for (const Index count : {1, 64, 150}) {
    const DenseInputs fresh(count, 3, 4);
    const MatrixXd out = apply_cross<T>(op, fresh.view(), S, one);
    CHECK(relative_error(out, times(exact(fresh.X, inputs.X), S)) < tolerance<T>);
    CHECK(identical(apply_cross<T>(op, fresh.view(), S, two), out));
  }
  const DenseInputs other(4, 2, 5);
  CHECK(rejection([&] { apply_cross<T>(op, other.view(), S, one); }) == "Xnew has 2 features, expected 3");
}

TEST_CASE_TEMPLATE("tiled: bilinear_grad is the derivative in all parameters", T, float, double) {
  for (const Index n : {1, 2, 127, 128, 129, 700}) {  // 700: more tiles than go into one partial sum
    CAPTURE(n);
    const DenseInputs inputs(n, 3, 1);
    Tiled<T> op = make<T>(inputs);
    REQUIRE(op.parameters() == 2);
    Random random(6);
    const MatrixXd E = random.matrix(n, 3);
    const MatrixXd F = random.matrix(n, 3);
    const VectorXd gradient = bilinear_grad<T>(op, E, F, one);
    const MatrixXd M = exact(inputs.X, inputs.X);
    const double by_variance = bilinear(E, M, F);
    CHECK(gradient(1) == doctest::Approx(by_variance).epsilon(1e-12));
    const VectorXd expected = differences(inputs.X, E, F);
    CHECK((gradient - expected).norm() <= 1e-7 * (1.0 + expected.norm()));
    CHECK(identical(bilinear_grad<T>(op, E, F, two), gradient));
  }
}

TEST_CASE_TEMPLATE("tiled: a subset is the operator of the rows, in their order", T, float, double) {
  const DenseInputs inputs(2 * tile<T> + 5, 3, 1);
  const DenseInputs fresh(70, 3, 2);
  Tiled<T> all = make<T>(inputs);
  for (const Index active : {Index{5}, tile<T> + 3, inputs.X.rows()}) {
    std::vector<Index> rows = shuffled(inputs.X.rows(), static_cast<std::uint64_t>(active));
    rows.resize(static_cast<std::size_t>(active));
    const auto held = all.subset(rows, two);
    auto& op = dynamic_cast<Tiled<T>&>(*held);
    REQUIRE(op.rows() == active);
    const MatrixXd X = inputs.X(rows, Eigen::all);
    const MatrixXd S = Random(7).matrix(active, 4);
    CHECK(relative_error(apply<T>(op, S, nullptr, two), times(exact(X, X), S)) < tolerance<T>);
    CHECK(relative_error(apply_cross<T>(op, fresh.view(), S, two), times(exact(fresh.X, X), S)) < tolerance<T>);
    const VectorXd expected = differences(X, S, S);
    CHECK((bilinear_grad<T>(op, S, S, two) - expected).norm() <= 1e-7 * (1.0 + expected.norm()));
    VectorXd diagonal(active);
    op.diag(diagonal.data());
    CHECK(identical(diagonal, VectorXd::Constant(active, variance)));
    Tiled<T> same(std::make_shared<OwnKernel>(length, variance), InputRows{inputs.view(), rows}, one);
    CHECK(identical(apply<T>(same, S, nullptr, one), apply<T>(op, S, nullptr, two)));
  }
}

TEST_CASE("tiled: shapes and inputs are checked") {
  const DenseInputs inputs(33, 3, 1);
  Tiled<double> op = make<double>(inputs);
  Matrix<double> S(33, 2), out(32, 2);
  double gradient[2];
  CHECK(rejection([&] { op.apply(S.view(), out.view(), nullptr, one); }) == "out has shape (32, 2), expected (33, 2)");
  CHECK(rejection([&] { op.apply(out.view(), out.view(), nullptr, one); }) == "S has shape (32, 2), expected (33, 2)");
  CHECK(rejection([&] { op.bilinear_grad(S.view(), out.view(), gradient, one); }) ==
        "F has shape (32, 2), expected (33, 2)");
  CHECK(rejection([&] { op.apply_cross(inputs.view(), S.view(), out.view(), one); }) ==
        "out has shape (32, 2), expected (33, 2)");
  const Inputs sparse(4, 8, 2, 1);
  CHECK(rejection([&] { Tiled<double>(std::make_shared<OwnKernel>(1.0, 1.0), sparse.sparse(), one); }) ==
        "the inputs are not dense rows in double precision");
}

TEST_CASE_TEMPLATE("tiled: Ctrl-C ends a product", T, float, double) {
  const DenseInputs inputs(3000, 200, 1);  // far longer than the monitor's interval
  Tiled<T> op = make<T>(inputs);
  const MatrixXd S = MatrixXd::Ones(3000, 1);
  for (const int threads : {1, 2}) {
    Stopping first, second, third;
    CHECK_THROWS_AS(apply<T>(op, S, nullptr, Execution{threads, &first}), Interrupted);
    CHECK_THROWS_AS(apply_cross<T>(op, inputs.view(), S, Execution{threads, &second}), Interrupted);
    CHECK_THROWS_AS(bilinear_grad<T>(op, S, S, Execution{threads, &third}), Interrupted);
  }
}
