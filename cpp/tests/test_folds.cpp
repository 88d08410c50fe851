#include <doctest/doctest.h>

#include "problems.hpp"
#include "taxolearn/likelihood/softmax.hpp"
#include "taxolearn/select/folds.hpp"
#include "trees.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

TEST_CASE("folds tell which rows they hold out and which they train on") {
  const Folds folds{{1, 0, -1, 1}, 2};
  CHECK(folds.held_out(0) == std::vector<Index>{1});
  CHECK(folds.trained(0) == std::vector<Index>{0, 2, 3});
  CHECK(folds.held_out(1) == std::vector<Index>{0, 3});
  CHECK(folds.trained(1) == std::vector<Index>{1, 2});
}

TEST_CASE("a replicated coupling acts on every copy alone") {
  const auto taxonomy = std::make_shared<const Taxonomy>(random_parents(12, 3, 5));
  const TreeCoupling tree(taxonomy, random_variances(12, 6));
  const Index C = tree.classes();
  const ReplicatedCoupling coupling(tree, 3);
  REQUIRE(coupling.classes() == 3 * C);
  REQUIRE(coupling.factors() == 3 * tree.factors());
  const MatrixXd S = Random(7).matrix(4, 3 * C);
  Matrix<double> whole = as_matrix(S);
  coupling.apply(4, whole.data());
  Matrix<double> factors(4, coupling.factors());
  coupling.to_factors(4, as_matrix(S).data(), factors.data());
  for (Index copy = 0; copy < 3; ++copy) {
    Matrix<double> part = as_matrix(S.middleCols(copy * C, C));
    Matrix<double> part_factors(4, tree.factors());
    tree.to_factors(4, part.data(), part_factors.data());
    tree.apply(4, part.data());
    CHECK(identical(dense(whole.view()).middleCols(copy * C, C), dense(part.view())));
    CHECK(
        identical(dense(factors.view()).middleCols(copy * tree.factors(), tree.factors()), dense(part_factors.view())));
  }
  std::vector<double> diagonal(static_cast<std::size_t>(3 * C)), one(static_cast<std::size_t>(C));
  coupling.diag(diagonal.data());
  tree.diag(one.data());
  for (std::size_t k = 0; k < diagonal.size(); ++k) CHECK(diagonal[k] == one[k % one.size()]);
}

TEST_CASE("gathered rows have the losses of the original ones, times their factors") {
  Random random(3);
  const std::vector<std::int32_t> labels = random.labels(6, 4);
  const Matrix<double> targets = as_matrix(random.targets(6, 4));
  const std::vector<double> weights = random.weights(6);
  const Softmax hard(labels.data(), 6, 4, weights.data());
  const Softmax soft(targets.view(), weights.data());
  const std::vector<Index> rows{5, 0, 0, 3};
  const std::vector<double> factors{1.0, 2.0, 0.0, 0.5};
  for (const Softmax* softmax : {&hard, &soft}) {
    const auto gathered = softmax->gather(rows, factors);
    REQUIRE(gathered->rows() == 4);
    Matrix<double> all = as_matrix(random.matrix(4, 4));
    Matrix<double> alone = all;
    const double loss = gathered->residual(0, 4, all.data());
    double sum = 0.0;
    for (Index k = 0; k < 4; ++k) {
      CHECK(gathered->row_weight(k) == weights[static_cast<std::size_t>(rows[static_cast<std::size_t>(k)])] *
                                           factors[static_cast<std::size_t>(k)]);
      sum +=
          factors[static_cast<std::size_t>(k)] * softmax->residual(rows[static_cast<std::size_t>(k)], 1, alone.row(k));
      for (Index c = 0; c < 4; ++c)
        CHECK(all.row(k)[c] == doctest::Approx(factors[static_cast<std::size_t>(k)] * alone.row(k)[c]));
    }
    CHECK(loss == doctest::Approx(sum));
  }
  CHECK(contains(rejection([&] { hard.gather({6}, {1.0}); }), "rows contains 6"));
  CHECK(contains(rejection([&] { hard.gather({1}, {}); }), "1 rows and 0 factors"));
}

TEST_CASE("the quadratic likelihood has the derivatives of its value") {
  Random random(9);
  const std::vector<std::int32_t> labels = random.labels(5, 4);
  const std::vector<double> weights = random.weights(5);
  const Softmax softmax(labels.data(), 5, 4, weights.data());
  Matrix<double> state = as_matrix(random.matrix(5, 4));
  softmax.curve(0, 5, state.data());
  const Matrix<double> c = as_matrix(random.matrix(5, 4));
  const QuadraticLikelihood quadratic(softmax, state, c, 7.0);
  const Matrix<double> u = as_matrix(random.matrix(5, 4));
  const Matrix<double> du = as_matrix(random.matrix(5, 4));
  const auto value = [&](double step) {
    Matrix<double> moved = u;
    for (Index k = 0; k < moved.size(); ++k) moved.data()[k] += step * du.data()[k];
    return quadratic.residual(0, 5, moved.data());
  };
  Matrix<double> residual = u;
  quadratic.residual(0, 5, residual.data());
  double slope = 0.0;
  for (Index k = 0; k < residual.size(); ++k) slope += residual.data()[k] * du.data()[k];
  const double h = 1e-4;
  CHECK(slope == doctest::Approx((value(h) - value(-h)) / (2.0 * h)).epsilon(1e-8));
  Matrix<double> moved = u;
  const LinePoint line = quadratic.line(0, 5, moved.data(), du.data());
  CHECK(line.value == doctest::Approx(value(0.0)));
  CHECK(QuadraticLikelihood(softmax, state, c, 9.0).line(0, 5, Matrix<double>(u).data(), du.data()).value ==
        doctest::Approx(line.value + 2.0));
  CHECK(line.slope == doctest::Approx(slope));
  CHECK(line.curvature == doctest::Approx((value(1.0) - 2.0 * value(0.0) + value(-1.0))).epsilon(1e-8));
}
