// Inputs in blocks against the same columns in one matrix, each block times the root of its variance.

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "blocks.hpp"
#include "operators.hpp"
#include "taxolearn/fit/fit.hpp"
#include "taxolearn/fit/predict.hpp"
#include "taxolearn/operators/block_linear.hpp"
#include "taxolearn/operators/linear.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

constexpr Index rows = block_rows;
constexpr Index classes = block_classes;

template <class T>
void check_operator(Operator<T>& op, const Three& inputs, const std::vector<double>& variances, double variance) {
  const MatrixXd Z = inputs.glued(variances);
  const MatrixXd M = variance * Z * Z.transpose();
  Random random(8);
  for (const Index m : {1, 3, 40}) check_products<T>(op, M, m, random);
  CHECK(op.rows() == rows);
  VectorXd diagonal(rows);
  op.diag(diagonal.data());
  CHECK(relative_error(diagonal, M.diagonal()) < 1e-12);
  const MatrixXd S = random.matrix(rows, 3);
  CHECK(relative_error(apply_cross<T>(op, inputs.view(), S, two), times(M, S)) < tolerance<T>);
  const MatrixXd E = random.matrix(rows, 3);
  const VectorXd gradient = bilinear_grad<T>(op, E, S, two);
  REQUIRE(gradient.size() == 3);
  for (Index b = 0; b < 3; ++b) {
    std::vector<double> alone(3, 0.0);
    alone[static_cast<std::size_t>(b)] = variances[static_cast<std::size_t>(b)];
    const MatrixXd part = inputs.glued(alone);
    CHECK(gradient(b) == doctest::Approx(bilinear(E, variance * part * part.transpose(), S)).epsilon(1e-4));
  }
}

}  // namespace

TEST_CASE("blocks are the matrices side by side, each times its factor") {
  const Three inputs;
  const InputView X = with_variances(inputs.view(), some);
  const MatrixXd Z = inputs.glued(some);
  CHECK(input_rows(X) == rows);
  CHECK(input_features(X) == 35);
  CHECK(input_entries(X) == input_entries(inputs.words.sparse()) + rows * 10);
  CHECK_FALSE(is_sparse(X));
  VectorXd norms(rows);
  squared_norms(X, norms.data());
  CHECK(relative_error(norms, Z.rowwise().squaredNorm()) < 1e-12);
  Random random(7);
  const MatrixXd W = random.matrix(35, 5), S = random.matrix(4, 5);
  Padded<double> out(6, 5), weights(MatrixXd::Constant(35, 5, 2.0));
  expand_rows(X, 9, Padded<double>(W).view(), out.view());
  CHECK(relative_error(dense(out.view()), times(Z.middleRows(9, 6), W)) < 1e-14);
  expand_rows(X, 9, Padded<float>(W).view(), out.view());
  CHECK(relative_error(dense(out.view()), times(Z.middleRows(9, 6), W)) < 1e-14);
  project_columns(X, 3, Padded<double>(S).view(), 1, 3, weights.view());
  MatrixXd expected = MatrixXd::Constant(35, 5, 2.0);
  expected.middleCols(1, 3) += times(Z.middleRows(3, 4).transpose(), S.middleCols(1, 3));
  CHECK(relative_error(dense(weights.view()), expected) < 1e-14);
  CHECK(out.padding_untouched());
  CHECK(weights.padding_untouched());
}

TEST_CASE("blocks that do not go together are rejected") {
  const Three inputs;
  const Inputs longer(rows + 1, 3, 2, 4);
  const InputView X = inputs.view();
  CHECK(contains(rejection([&] { side_by_side({}); }), "at least one matrix"));
  CHECK(contains(rejection([&] { side_by_side({inputs.words.sparse(), longer.dense()}); }), "31 rows, expected 30"));
  CHECK(contains(rejection([&] { side_by_side({X}); }), "has blocks itself"));
  CHECK(contains(rejection([&] { with_variances(X, {1.0, 2.0}); }), "2 variances of blocks, expected 3"));
  CHECK(contains(rejection([&] { with_variances(X, {1.0, 0.0, 1.0}); }), "block 1 must be positive"));
  CHECK(contains(rejection([&] { with_variances(inputs.words.sparse(), {1.0}); }), "one matrix"));
  CHECK(contains(rejection([&] { make_linear<double>(X, 1.0, LinearAlgorithm::sparse, one); }), "sparse inputs"));
  CHECK(contains(rejection([&] { make_linear<double>(X, 1.0, LinearAlgorithm::dense, one); }), "dense inputs"));
  CHECK(contains(rejection([&] { make_linear<double>(longer.dense(), 1.0, LinearAlgorithm::blocks, one); }), "blocks"));
  Matrix<double> K(rows, rows);
  const InputRows all{X, {}}, scaled{with_variances(X, some), {}}, single{inputs.words.sparse(), {}};
  const auto evaluate = [&](const Kernel& kernel, const InputRows& of) {
    return rejection([&] { kernel_matrix<double>(kernel, of, of, K.view(), one); });
  };
  CHECK(contains(evaluate(*make_linear_kernel(1.0), all), "are in blocks"));
  CHECK(contains(evaluate(*linear_blocks(some), single), "0 blocks, expected 3"));
  CHECK(contains(evaluate(*linear_blocks({1.0, 2.0}), all), "3 blocks, expected 2"));
  CHECK(contains(evaluate(*linear_blocks(some), scaled), "expected 1"));
  CHECK(contains(rejection([&] { make_block_kernel({}); }), "no kernel"));
}

TEST_CASE_TEMPLATE("the operator of blocks is that of the glued matrix, also stored and of some rows", T, float,
                   double) {
  const Three inputs;
  const InputView X = with_variances(inputs.view(), some);
  for (const LinearAlgorithm algorithm : {LinearAlgorithm::blocks, LinearAlgorithm::stored}) {
    const auto op = make_linear<T>(X, 1.5, algorithm, two);
    CHECK(op->algorithm() == (algorithm == LinearAlgorithm::blocks ? "blocks" : "stored"));
    check_operator<T>(*op, inputs, some, 1.5);
    const std::vector<Index> chosen{4, 29, 0, 7, 13};
    const auto part = op->subset(chosen, two);
    MatrixXd Z(5, 35);
    for (Index i = 0; i < 5; ++i) Z.row(i) = inputs.glued(some).row(chosen[static_cast<std::size_t>(i)]);
    Random random(9);
    check_products<T>(*part, 1.5 * Z * Z.transpose(), 3, random);
  }
  BlockLinear<T> changed(InputRows{inputs.view(), {}}, 1.5, FeatureOrder::compact, one);
  check_operator<T>(changed, inputs, none, 1.5);
  changed.set_factors(X);
  check_operator<T>(changed, inputs, some, 1.5);
}

TEST_CASE_TEMPLATE("features of blocks are those of the glued matrix", T, float, double) {
  const Three inputs;
  const auto op = make_linear_features<T>(with_variances(inputs.view(), some), 1.5, one);
  REQUIRE(op->features() == 35);
  const MatrixXd Z = std::sqrt(1.5) * inputs.glued(some);
  Random random(8);
  const MatrixXd S = random.matrix(rows, 5), W = random.matrix(35, 5);
  const VectorXd shift = random.matrix(5, 1);
  const std::vector<T> values(shift.data(), shift.data() + 5);
  Padded<T> weights(35, 5), out(rows, 5);
  op->project(Padded<T>(S).view(), weights.view(), two);
  CHECK(relative_error(dense(weights.view()), times(Z.transpose(), S)) < tolerance<T>);
  op->expand(Padded<T>(W).view(), out.view(), nullptr, two);
  CHECK(relative_error(dense(out.view()), times(Z, W)) < tolerance<T>);
  op->expand(Padded<T>(W).view(), out.view(), values.data(), two);
  CHECK(relative_error(dense(out.view()), times(Z, W).rowwise() + shift.transpose()) < tolerance<T>);
  CHECK(weights.padding_untouched());
  CHECK(out.padding_untouched());
}

TEST_CASE("few rows are stored, where their blocks together have enough entries") {
  const Inputs wide(20, 6, 2, 1), narrow(20, 5, 2, 2);
  CHECK(choose_linear_algorithm(wide.dense()) == LinearAlgorithm::dense);
  CHECK(choose_linear_algorithm(side_by_side({narrow.dense()})) == LinearAlgorithm::blocks);
  CHECK(choose_linear_algorithm(side_by_side({wide.dense(), narrow.dense()})) == LinearAlgorithm::stored);
}

TEST_CASE("a fit to blocks is one to the glued matrix, in either space and precision, flat and under a tree") {
  const Three inputs;
  const Labels labels;
  const MatrixXd Z = inputs.glued(some);
  const Padded<double> glued(Z);
  for (const bool tree : {false, true}) {
    for (const Space space : {Space::coefficients, Space::weights}) {
      for (const Precision precision : {Precision::double_, Precision::single, Precision::automatic}) {
        for (const Method method : {Method::lbfgs, Method::nonlinear_cg, Method::newton, Method::exact}) {
          const bool dual = method == Method::newton || method == Method::exact;
          if (dual && (space == Space::weights || precision == Precision::single)) continue;
          if (method == Method::exact && tree) continue;
          CAPTURE(tree);
          CAPTURE(static_cast<int>(space));
          CAPTURE(static_cast<int>(precision));
          CAPTURE(static_cast<int>(method));
          FitSettings settings = precise(space, precision);
          settings.method = method;
          Problem expected{glued.view(), &labels.likelihood, {}};
          expected.prior.variance = 0.9;
          expected.prior.intercept_variance = 0.6;
          if (tree) expected.prior.coupling = &labels.tree;
          Problem blocks = expected;
          blocks.X = inputs.view();
          blocks.prior.block_variances = some;
          const FitResult a = fit(expected, settings, Start{}, one), b = fit(blocks, settings, Start{}, two);
          REQUIRE(b.status == Status::converged);
          const double close = precision == Precision::single ? 1e-6 : 1e-9;
          CHECK(b.objective == doctest::Approx(a.objective).epsilon(close));
          CHECK(b.relative_gap <= settings.tolerance);
          MatrixXd weights = dense(b.weights.view());
          for (std::size_t k = 0; k < 3; ++k) {
            const InputBlock& block = (*input_blocks(blocks.X))[k];
            weights.middleRows(block.first, input_features(block.X)) /= std::sqrt(some[k]);
          }
          if (precision != Precision::single) {
            CHECK(relative_error(weights, dense(a.weights.view())) < 1e-5);
            for (std::size_t c = 0; c < classes; ++c)
              CHECK(b.intercepts[c] == doctest::Approx(a.intercepts[c]).epsilon(1e-5).scale(1e-2));
          }
          // Predictions need no variances, and a start from the weights is one from the optimum.
          Matrix<double> u(rows, classes), v(rows, classes);
          predict(expected.X, a.weights.view(), a.intercepts.data(), Link::softmax, Output::predictor, u.view(), one);
          predict(blocks.X, b.weights.view(), b.intercepts.data(), Link::softmax, Output::predictor, v.view(), two);
          CHECK(relative_error(dense(v.view()), dense(u.view())) < (precision == Precision::single ? 1e-2 : 1e-5));
          Buffer<double> begin(b.weights.data(), b.weights.data() + b.weights.size());
          begin.insert(begin.end(), b.intercepts.begin(), b.intercepts.end());
          Start start;
          start.weights = begin.data();
          const FitResult again = fit(blocks, settings, start, one);
          CHECK(again.objective == doctest::Approx(b.objective).epsilon(close));
          CHECK(again.iterations < b.iterations);
        }
      }
    }
  }
}

TEST_CASE("variances of blocks that do not fit the inputs are rejected") {
  const Three inputs;
  const Labels labels;
  Problem problem{inputs.view(), &labels.likelihood, {}};
  problem.prior.block_variances = {1.0, 2.0};
  CHECK(contains(rejection([&] { fit(problem, FitSettings{}, Start{}, one); }), "2 variances of blocks, expected 3"));
  KernelMatrices matrices({linear_blocks(some)}, inputs.view(), {});
  problem.prior.kernels = &matrices;
  CHECK(contains(rejection([&] { fit(problem, FitSettings{}, Start{}, one); }), "belong to the kernels"));
  problem.prior.kernels = nullptr;
  problem.X = inputs.words.sparse();
  CHECK(contains(rejection([&] { fit(problem, FitSettings{}, Start{}, one); }), "X is one matrix"));
}
