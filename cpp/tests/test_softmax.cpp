#include <doctest/doctest.h>

#include <limits>

#include "problems.hpp"
#include "taxolearn/likelihood/softmax.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

constexpr Index n = 12;
constexpr Index classes = 5;

/// Labels, targets and weights, and the four likelihoods made of them, each with its dense counterpart.
struct Likelihoods {
  struct Case {
    Softmax likelihood;
    DenseProblem oracle;
  };

  Random random{1};
  std::vector<std::int32_t> labels = random.labels(n, classes);
  MatrixXd soft = random.targets(n, classes);
  Padded<double> targets{soft};
  std::vector<double> weights = random.weights(n);
  VectorXd s = Eigen::Map<VectorXd>(weights.data(), n);
  std::vector<Case> cases;

  Likelihoods() {
    const auto dense_of = [](const MatrixXd& Y, const VectorXd& w) { return DenseProblem(MatrixXd(n, 0), Y, w, 1, 1); };
    const MatrixXd hard = one_hot(labels, classes);
    const DenseView<const double> view = targets.view();
    cases.push_back({Softmax(labels.data(), n, classes, nullptr), dense_of(hard, VectorXd::Ones(n))});
    cases.push_back({Softmax(labels.data(), n, classes, weights.data()), dense_of(hard, s)});
    cases.push_back({Softmax(view, nullptr), dense_of(soft, VectorXd::Ones(n))});
    cases.push_back({Softmax(view, weights.data()), dense_of(soft, s)});
  }
};

MatrixXd rows_of(const Matrix<double>& matrix) { return dense(matrix.view()); }

}  // namespace

TEST_CASE("loss and residual agree with dense algebra and finite differences, on any block of rows") {
  const Likelihoods problems;
  const MatrixXd u = 2.0 * Random(3).matrix(n, classes);
  for (const auto& [likelihood, oracle] : problems.cases) {
    CHECK(likelihood.rows() == n);
    CHECK(likelihood.outputs() == classes);
    Matrix<double> residual = as_matrix(u);
    const double loss = likelihood.residual(0, n, residual.data());
    CHECK(loss == doctest::Approx(oracle.loss(u)).epsilon(1e-13));
    CHECK(relative_error(rows_of(residual), oracle.residual(u)) < 1e-13);
    Matrix<double> part = as_matrix(u.middleRows(3, 4));
    likelihood.residual(3, 4, part.data());
    CHECK(relative_error(rows_of(part), oracle.residual(u).middleRows(3, 4)) < 1e-13);

    const auto loss_at = [&, &model = likelihood](const MatrixXd& at) {
      Matrix<double> copy = as_matrix(at);
      return model.residual(0, n, copy.data());
    };
    const double h = 1e-5;
    for (const Index i : {0, 2, 7}) {
      for (Index c = 0; c < classes; ++c) {
        MatrixXd up = u, down = u;
        up(i, c) += h;
        down(i, c) -= h;
        CHECK(std::abs((loss_at(up) - loss_at(down)) / (2.0 * h) - residual.row(i)[c]) < 1e-8);
      }
    }
  }
}

TEST_CASE("the Hessian is that of dense algebra") {
  const Likelihoods problems;
  Random random(5);
  const MatrixXd u = 2.0 * random.matrix(n, classes);
  const MatrixXd pi = softmax(u);
  for (const auto& [likelihood, oracle] : problems.cases) {
    Matrix<double> curvature = as_matrix(u), D(n, classes);
    likelihood.curvature(0, n, curvature.data());
    likelihood.hessian_diagonal(0, n, curvature.data(), D.data());
    for (Index i = 0; i < n; ++i) {
      const VectorXd p = pi.row(i);
      const MatrixXd hessian = oracle.s(i) * (MatrixXd(p.asDiagonal()) - p * p.transpose());
      MatrixXd V(classes, classes);
      for (Index c = 0; c < classes; ++c) {
        VectorXd x = VectorXd::Unit(classes, c);
        likelihood.root(i, 1, curvature.row(i), x.data());
        V.col(c) = x;
      }
      CHECK((V * V.transpose() - hessian).norm() < 1e-14);
      CHECK((rows_of(D).row(i).transpose() - oracle.s(i) * p).norm() < 1e-14);
    }
    Matrix<double> product = as_matrix(random.matrix(n, classes));
    const MatrixXd x = rows_of(product);
    likelihood.hessian(0, n, curvature.data(), product.data());
    const MatrixXd expected =
        (pi.array() * (x.array().colwise() - (pi.array() * x.array()).rowwise().sum())).colwise() * oracle.s.array();
    CHECK(relative_error(rows_of(product), expected) < 1e-14);
  }
}

TEST_CASE("one-hot targets are labels") {
  Likelihoods problems;
  const MatrixXd u = 2.0 * Random(6).matrix(n, classes);
  const Padded<double> hard(one_hot(problems.labels, classes));
  const Softmax soft(hard.view(), problems.weights.data());
  const Softmax labelled(problems.labels.data(), n, classes, problems.weights.data());
  Matrix<double> a = as_matrix(u), b = as_matrix(u);
  CHECK(soft.residual(0, n, a.data()) == doctest::Approx(labelled.residual(0, n, b.data())).epsilon(1e-14));
  CHECK(relative_error(rows_of(a), rows_of(b)) < 1e-15);
}

TEST_CASE("extreme and equal predictors give finite answers") {
  MatrixXd u(4, 3);
  u << 1e3, -1e3, 0, -1e3, -1e3, -1e3, 1e3, 1e3, 1e3, -1e3, 1e3, 999;
  const std::vector<std::int32_t> labels{0, 1, 2, 0};
  const Softmax likelihood(labels.data(), 4, 3, nullptr);
  Matrix<double> residual = as_matrix(u), moved = as_matrix(u), state = as_matrix(u), log_pi = as_matrix(u);
  const double expected = 2.0 * std::log(3.0) + 2000.0 + std::log1p(std::exp(-1.0));
  CHECK(likelihood.residual(0, 4, residual.data()) == doctest::Approx(expected).epsilon(1e-14));
  MatrixXd answer(4, 3);
  const double p = 1.0 / (1.0 + std::exp(-1.0));
  answer << 0, 0, 0, 1.0 / 3, -2.0 / 3, 1.0 / 3, 1.0 / 3, 1.0 / 3, -2.0 / 3, -1, p, 1 - p;
  CHECK((rows_of(residual) - answer).norm() < 1e-14);

  const LinePoint point = likelihood.line(0, 4, moved.data(), as_matrix(u).data());
  CHECK(point.value == doctest::Approx(expected));
  CHECK(std::isfinite(point.slope));
  CHECK(std::isfinite(point.curvature));
  CHECK(point.curvature >= 0.0);
  log_softmax_rows(4, 3, log_pi.data());
  CHECK(relative_error(rows_of(log_pi), log_softmax(u)) < 1e-14);

  likelihood.curvature(0, 4, state.data());
  Matrix<double> x = as_matrix(MatrixXd::Ones(4, 3)), y = as_matrix(MatrixXd::Ones(4, 3)), diagonal(4, 3);
  likelihood.root(0, 4, state.data(), x.data());
  likelihood.root_transposed(0, 4, state.data(), y.data());
  likelihood.root_diagonal(0, 4, state.data(), diagonal.data());
  CHECK(rows_of(x).allFinite());
  CHECK(rows_of(y).allFinite());
  CHECK(rows_of(diagonal).allFinite());
  CHECK(rows_of(diagonal).minCoeff() > -1e-15);
}

TEST_CASE("rows of weight zero do not count") {
  const std::vector<std::int32_t> labels{0, 1};
  const std::vector<double> weights{0.0, 2.0};
  const Softmax likelihood(labels.data(), 2, 2, weights.data());
  const MatrixXd u = 1e3 * Random(7).matrix(2, 2);
  Matrix<double> residual = as_matrix(u);
  const double loss = likelihood.residual(0, 2, residual.data());
  CHECK(loss == doctest::Approx(2.0 * (log_sum_exp(u)(1) - u(1, 1))));
  CHECK(rows_of(residual).row(0).norm() == 0.0);
}

TEST_CASE("labels, targets and weights are checked") {
  const std::vector<std::int32_t> labels{0, 2, 1};
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(rejection([&] { Softmax(labels.data(), 3, 3, nullptr); }).empty());
  CHECK(rejection([&] { Softmax(labels.data(), 3, 2, nullptr); }) ==
        "label 2 of row 1 is out of range, expected 0 .. 1");
  const std::vector<std::int32_t> negative{-1};
  CHECK(contains(rejection([&] { Softmax(negative.data(), 1, 2, nullptr); }), "label -1 of row 0"));
  CHECK(rejection([&] { Softmax(labels.data(), 0, 0, nullptr); }) == "number of classes is 0, expected at least 1");
  for (const double bad : {-0.5, infinity, std::nan("")}) {
    const std::vector<double> weights{1.0, bad, 1.0};
    CHECK(contains(rejection([&] { Softmax(labels.data(), 3, 3, weights.data()); }), "sample_weight[1] is "));
  }
  const std::vector<std::vector<double>> targets{{0.5, 0.4}, {1.5, -0.5}, {std::nan(""), 1.0}, {infinity, 0.0}};
  for (const std::vector<double>& row : targets) {
    CHECK(contains(rejection([&] { Softmax(DenseView<const double>(row.data(), 1, 2), nullptr); }),
                   "targets of row 0 are not a distribution"));
  }
  CHECK(contains(rejection([] { Softmax(DenseView<const double>(nullptr, 3, 0), nullptr); }), "(3, 0)"));
}

TEST_CASE("predictors that are not finite do not go unnoticed in single precision") {
  const std::vector<std::int32_t> labels{1, 0};
  const Softmax likelihood(labels.data(), 2, 3, nullptr);
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (const Index place : {0, 1, 5}) {
      std::vector<double> u(6, 0.5);
      u[static_cast<std::size_t>(place)] = bad;
      std::vector<float> out(6), du(6, 1.0F);
      CHECK(!std::isfinite(likelihood.single_residual(0, 2, u.data(), out.data())));
      CHECK(!std::isfinite(likelihood.single_line(0, 2, u.data(), 0.5, du.data()).slope));
    }
  }
}
