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

TEST_CASE("softmax and its logarithm") {
  const MatrixXd u = 3.0 * Random(2).matrix(n, classes);
  Matrix<double> pi = as_matrix(u), log_pi = as_matrix(u);
  softmax_rows(n, classes, pi.data());
  log_softmax_rows(n, classes, log_pi.data());
  CHECK(relative_error(rows_of(pi), softmax(u)) < 1e-14);
  CHECK(relative_error(rows_of(log_pi), log_softmax(u)) < 1e-14);
}

TEST_CASE("loss and residual agree with dense algebra and finite differences, on any block of rows") {
  const Likelihoods problems;
  const MatrixXd u = 2.0 * Random(3).matrix(n, classes);
  for (const auto& [likelihood, oracle] : problems.cases) {
    CHECK(likelihood.rows() == n);
    CHECK(likelihood.classes() == classes);
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

TEST_CASE("derivatives along a line agree with finite differences") {
  const Likelihoods problems;
  Random random(4);
  const MatrixXd u = 2.0 * random.matrix(n, classes);
  const MatrixXd du = random.matrix(n, classes);
  const Matrix<double> direction = as_matrix(du);
  for (const auto& [likelihood, oracle] : problems.cases) {
    const auto at = [&, &model = likelihood](double t) {
      Matrix<double> moved = as_matrix(u + t * du);
      return model.line(0, n, moved.data(), direction.data());
    };
    const double h = 1e-5;
    const LinePoint point = at(0.0);
    CHECK(point.value == doctest::Approx(oracle.loss(u)).epsilon(1e-13));
    CHECK(std::abs(point.slope - (at(h).value - at(-h).value) / (2.0 * h)) < 1e-8);
    CHECK(std::abs(point.curvature - (at(h).slope - at(-h).slope) / (2.0 * h)) < 1e-8);
    CHECK(point.curvature > 0.1);
    Matrix<double> part = as_matrix(u.middleRows(3, 4));
    Matrix<double> rest = as_matrix(u.bottomRows(5));
    Matrix<double> head = as_matrix(u.topRows(3));
    LinePoint sum = likelihood.line(3, 4, part.data(), direction.row(3));
    sum += likelihood.line(7, 5, rest.data(), direction.row(7));
    sum += likelihood.line(0, 3, head.data(), direction.row(0));
    CHECK(sum.value == doctest::Approx(point.value).epsilon(1e-13));
    CHECK(sum.slope == doctest::Approx(point.slope).epsilon(1e-12));
    CHECK(sum.curvature == doctest::Approx(point.curvature).epsilon(1e-13));
  }
}

TEST_CASE("V V^T is the Hessian, V^T its transpose, and the diagonal that of V^T V") {
  const Likelihoods problems;
  Random random(5);
  const MatrixXd u = 2.0 * random.matrix(n, classes);
  const MatrixXd pi = softmax(u);
  for (const auto& [likelihood, oracle] : problems.cases) {
    Matrix<double> state = as_matrix(u);
    likelihood.curve(0, n, state.data());
    const auto columns = [&, &model = likelihood](Index i, bool transposed) {  // V_i or V_i^T, column by column
      MatrixXd out(classes, classes);
      for (Index c = 0; c < classes; ++c) {
        VectorXd x = VectorXd::Unit(classes, c);
        if (transposed) model.root_transposed(i, 1, state.row(i), x.data());
        if (!transposed) model.root(i, 1, state.row(i), x.data());
        out.col(c) = x;
      }
      return out;
    };
    Matrix<double> diagonal(n, classes);
    likelihood.root_diagonal(0, n, state.data(), diagonal.data());
    for (Index i = 0; i < n; ++i) {
      const VectorXd p = pi.row(i);
      const MatrixXd hessian = oracle.s(i) * (MatrixXd(p.asDiagonal()) - p * p.transpose());
      const MatrixXd V = columns(i, false);
      CHECK((V * V.transpose() - hessian).norm() < 1e-14);
      CHECK((columns(i, true) - V.transpose()).norm() < 1e-15);
      const VectorXd expected = (V.transpose() * V).diagonal();
      CHECK((rows_of(diagonal).row(i).transpose() - expected).norm() < 1e-14);
    }
    // All rows in one call, by the dot-product test.
    Matrix<double> x = as_matrix(random.matrix(n, classes)), y = as_matrix(random.matrix(n, classes));
    const MatrixXd x_before = rows_of(x), y_before = rows_of(y);
    const Matrix<double> a = x, b = y;
    likelihood.root(0, n, state.data(), x.data());
    likelihood.root_transposed(0, n, state.data(), y.data());
    Matrix<double> product = b, plain = b;
    likelihood.hessian(0, n, state.data(), product.data());
    likelihood.Likelihood::hessian(0, n, state.data(), plain.data());
    const MatrixXd expected =
        (pi.array() * (y_before.array().colwise() - (pi.array() * y_before.array()).rowwise().sum())).colwise() *
        oracle.s.array();
    CHECK(relative_error(rows_of(product), expected) < 1e-14);
    CHECK(relative_error(rows_of(plain), expected) < 1e-14);
    const LinePoint line = likelihood.hessian_line(0, n, state.data(), a.data(), b.data());
    const LinePoint plain_line = likelihood.Likelihood::hessian_line(0, n, state.data(), a.data(), b.data());
    CHECK(line.slope == doctest::Approx((x_before.array() * expected.array()).sum()).epsilon(1e-12));
    CHECK(line.curvature == doctest::Approx((y_before.array() * expected.array()).sum()).epsilon(1e-12));
    CHECK(likelihood.hessian_line(0, n, state.data(), b.data(), a.data()).value ==
          doctest::Approx(0.5 * line.curvature).epsilon(1e-12));
    CHECK(plain_line.value == doctest::Approx(line.value).epsilon(1e-12));
    CHECK(plain_line.slope == doctest::Approx(line.slope).epsilon(1e-12));
    CHECK(plain_line.curvature == doctest::Approx(line.curvature).epsilon(1e-12));
    CHECK((rows_of(x).array() * y_before.array()).sum() ==
          doctest::Approx((x_before.array() * rows_of(y).array()).sum()).epsilon(1e-12));
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

  likelihood.curve(0, 4, state.data());
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

TEST_CASE("single precision gives the same residuals and derivatives to its digits") {
  const Likelihoods problems;
  Random random(9);
  for (const double size : {2.0, 200.0}) {  // far apart: most probabilities underflow
    const MatrixXd u = size * random.matrix(n, classes);
    const Matrix<double> at = as_matrix(u);
    const MatrixXd du = random.matrix(n, classes);
    const Matrix<double> direction = as_matrix(du);
    const std::vector<float> single(direction.data(), direction.data() + direction.size());
    for (const auto& [likelihood, oracle] : problems.cases) {
      std::vector<float> residual(static_cast<std::size_t>(n * classes));
      double loss = likelihood.single_residual(0, 5, at.data(), residual.data());
      loss += likelihood.single_residual(5, n - 5, at.row(5), residual.data() + 5 * classes);
      CHECK(loss == doctest::Approx(oracle.loss(u)).epsilon(1e-6));
      Matrix<double> back(n, classes);
      std::copy(residual.begin(), residual.end(), back.data());
      CHECK(relative_error(rows_of(back), oracle.residual(u)) < 1e-6);

      for (const double step : {0.0, 0.7}) {
        Matrix<double> moved = as_matrix(u + step * du);
        const LinePoint exact = likelihood.line(0, n, moved.data(), direction.data());
        LinePoint point = likelihood.single_line(0, 3, at.data(), step, single.data());
        point += likelihood.single_line(3, n - 3, at.row(3), step, single.data() + 3 * classes);
        CHECK(point.value == doctest::Approx(exact.value).epsilon(1e-6));
        CHECK(std::abs(point.slope - exact.slope) < 1e-5);
        CHECK(std::abs(point.curvature - exact.curvature) < 1e-5);
        const LinePoint plain = likelihood.Likelihood::single_line(0, n, at.data(), step, single.data());
        CHECK(plain.value == doctest::Approx(exact.value).epsilon(1e-6));
        CHECK(std::abs(plain.slope - exact.slope) < 1e-5);
      }
      std::vector<float> plain(residual.size());
      CHECK(likelihood.Likelihood::single_residual(0, n, at.data(), plain.data()) ==
            doctest::Approx(loss).epsilon(1e-6));
      for (std::size_t k = 0; k < plain.size(); ++k) CHECK(std::abs(plain[k] - residual[k]) < 1e-5);
    }
  }
}

TEST_CASE("single precision agrees with double for any number of classes") {
  constexpr Index rows = 3;
  for (const Index many : {1, 2, 7, 8, 9, 15, 16, 17, 20, 31, 63, 64, 65, 511, 513, 1100}) {
    CAPTURE(many);
    Random random(11);
    const MatrixXd u = 3.0 * random.matrix(rows, many);
    const Matrix<double> at = as_matrix(u), du = as_matrix(random.matrix(rows, many));
    const std::vector<float> single(du.data(), du.data() + du.size());
    const std::vector<double> rounded(single.begin(), single.end());
    const std::vector<std::int32_t> labels{0, static_cast<std::int32_t>(many - 1), static_cast<std::int32_t>(many / 2)};
    Matrix<double> targets = as_matrix(random.matrix(rows, many));
    softmax_rows(rows, many, targets.data());
    for (const Softmax& likelihood : {Softmax(labels.data(), rows, many, nullptr), Softmax(targets.view(), nullptr)}) {
      Matrix<double> exact = at;
      const double loss = likelihood.residual(0, rows, exact.data());
      std::vector<float> residual(static_cast<std::size_t>(rows * many) + 1, 7.0F);
      CHECK(std::abs(likelihood.single_residual(0, rows, at.data(), residual.data()) - loss) < 1e-5);
      for (Index k = 0; k < exact.size(); ++k)
        CHECK(std::abs(static_cast<double>(residual[static_cast<std::size_t>(k)]) - exact.data()[k]) < 1e-6);
      CHECK(residual.back() == 7.0F);
      Matrix<double> moved = as_matrix(u);
      for (Index k = 0; k < moved.size(); ++k) moved.data()[k] += 0.3 * rounded[static_cast<std::size_t>(k)];
      const LinePoint expected = likelihood.line(0, rows, moved.data(), rounded.data());
      const LinePoint point = likelihood.single_line(0, rows, at.data(), 0.3, single.data());
      CHECK(std::abs(point.value - expected.value) < 1e-5);
      CHECK(std::abs(point.slope - expected.slope) < 1e-5);
      CHECK(std::abs(point.curvature - expected.curvature) < 1e-5);
      for (const Index place : {Index{0}, many / 2, many - 1}) {
        Matrix<double> bad = at;
        bad.row(1)[place] = std::numeric_limits<double>::quiet_NaN();
        CHECK(!std::isfinite(likelihood.single_residual(0, rows, bad.data(), residual.data())));
        CHECK(!std::isfinite(likelihood.single_line(0, rows, bad.data(), 0.3, single.data()).slope));
      }
    }
  }
}

TEST_CASE("the sum of Hessians is that of V V^T") {
  const Likelihoods problems;
  const MatrixXd u = 2.0 * Random(10).matrix(n, classes);
  for (const auto& [likelihood, oracle] : problems.cases) {
    Matrix<double> state = as_matrix(u);
    likelihood.curve(0, n, state.data());
    Matrix<double> sum(classes, classes);
    likelihood.add_hessian(0, 4, state.data(), sum.data());
    likelihood.add_hessian(4, n - 4, state.row(4), sum.data());
    MatrixXd expected = MatrixXd::Zero(classes, classes);
    for (Index i = 0; i < n; ++i) {
      for (Index c = 0; c < classes; ++c) {
        Matrix<double> x(1, classes);
        x.row(0)[c] = 1.0;
        likelihood.root_transposed(i, 1, state.row(i), x.data());
        likelihood.root(i, 1, state.row(i), x.data());
        for (Index k = 0; k < classes; ++k) expected(k, c) += x.row(0)[k];
      }
    }
    CHECK(relative_error(rows_of(sum), expected) < 1e-13);
  }
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
