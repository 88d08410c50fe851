// Inputs in blocks against the same columns in one matrix, each block times the root of its variance.

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "operators.hpp"
#include "problems.hpp"
#include "taxolearn/couplings/factors.hpp"
#include "taxolearn/couplings/independent.hpp"
#include "taxolearn/fit/choose.hpp"
#include "taxolearn/fit/fit.hpp"
#include "taxolearn/fit/predict.hpp"
#include "taxolearn/kernels/functions.hpp"
#include "taxolearn/likelihood/softmax.hpp"
#include "taxolearn/operators/block_linear.hpp"
#include "taxolearn/operators/kernel_matrices.hpp"
#include "taxolearn/operators/linear.hpp"
#include "taxolearn/select/criterion.hpp"
#include "trees.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

constexpr Index rows = 30;
constexpr Index classes = 4;

/// Sparse words in single precision, dense numbers in double precision, dense ones in single precision.
struct Three {
  Inputs words{rows, 25, 5, 1};
  Inputs numbers{rows, 6, 6, 2};
  Inputs more{rows, 4, 3, 3};

  InputView view() const { return side_by_side({words.views[0], numbers.views[5], more.views[4]}); }

  MatrixXd glued(const std::vector<double>& variances) const {
    MatrixXd out(rows, 35);
    out << std::sqrt(variances[0]) * words.X, std::sqrt(variances[1]) * numbers.X, std::sqrt(variances[2]) * more.X;
    return out;
  }
};

const std::vector<double> some{0.7, 2.5, 0.3};
const std::vector<double> none{1.0, 1.0, 1.0};

std::vector<double> exponentials(const std::vector<double>& logs) {
  std::vector<double> out;
  for (const double log : logs) out.push_back(std::exp(log));
  return out;
}

std::shared_ptr<const Kernel> linear_blocks(const std::vector<double>& variances) {
  std::vector<std::shared_ptr<const Kernel>> parts;
  for (const double variance : variances) parts.push_back(make_linear_kernel(variance));
  return make_block_kernel(parts);
}

/// Linear on words, radial on numbers, Matern on the others: log (v, l, v, l, v).
std::shared_ptr<const Kernel> mixed_blocks(const std::vector<double>& logs) {
  const std::vector<double> at = exponentials(logs);
  return make_block_kernel({make_linear_kernel(at[0]), make_stationary_kernel(StationaryForm::rbf, {at[1]}, at[2]),
                            make_stationary_kernel(StationaryForm::matern32, {at[3]}, at[4])});
}
const std::vector<double> mixed_logs{-0.4, 0.3, 0.6, 0.1, -0.2};

MatrixXd mixed_matrix(const Three& inputs, const std::vector<double>& logs) {
  const std::vector<double> at = exponentials(logs);
  const std::vector<std::shared_ptr<const Kernel>> parts{
      make_linear_kernel(at[0]), make_stationary_kernel(StationaryForm::rbf, {at[1]}, at[2]),
      make_stationary_kernel(StationaryForm::matern32, {at[3]}, at[4])};
  const std::vector<InputView> views{inputs.words.sparse(), inputs.numbers.dense(), inputs.more.dense()};
  MatrixXd sum = MatrixXd::Zero(rows, rows);
  for (std::size_t b = 0; b < parts.size(); ++b) {
    Matrix<double> K(rows, rows);
    const InputRows all{views[b], {}};
    kernel_matrix<double>(*parts[b], all, all, K.view(), one);
    sum += dense(K.view());
  }
  return sum;
}

struct Labels {
  std::vector<std::int32_t> labels = Random(5).labels(rows, classes);
  std::vector<double> weights = Random(6).weights(rows);
  Softmax likelihood{labels.data(), rows, classes, weights.data()};
  TreeCoupling tree{std::make_shared<const Taxonomy>(std::vector<Index>{-1, 0, 0, 1, 1, 2, 2}),
                    TiedVariances{{0.0, 0.8, 1.2, 0.5, 0.9, 1.1, 0.4}, {-1, 0, 1, 2, 3, 4, 5}}};
};

FitSettings precise(Space space, Precision precision = Precision::double_) {
  FitSettings settings;
  settings.tolerance = precision == Precision::single ? 1e-6 : 1e-13;
  settings.space = space;
  settings.precision = precision;
  return settings;
}

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
  problem.X = inputs.words.sparse();
  CHECK(contains(rejection([&] { fit(problem, FitSettings{}, Start{}, one); }), "X is one matrix"));
}

TEST_CASE("a kernel of linear blocks leaves the products to the features, others to matrices") {
  const Three inputs;
  const KernelPrior linear({linear_blocks(some)}, {}, nullptr, 1.0, inputs.view(), {});
  CHECK(linear.get().kernels == nullptr);
  CHECK(linear.get().variance == 1.0);
  CHECK(linear.get().block_variances == some);
  const KernelPrior mixed({mixed_blocks(mixed_logs)}, {}, nullptr, 1.0, inputs.view(), {});
  CHECK(mixed.get().kernels != nullptr);
  CHECK(mixed.get().block_variances.empty());
}

TEST_CASE("a kernel of blocks is the sum of its parts, and so are its derivatives") {
  const Three inputs;
  const auto kernel = mixed_blocks(mixed_logs);
  REQUIRE(kernel->parameters() == 5);
  const InputRows all{inputs.view(), {}};
  const MatrixXd K = mixed_matrix(inputs, mixed_logs);
  Matrix<double> found(rows, rows);
  kernel_matrix<double>(*kernel, all, all, found.view(), two);
  CHECK(relative_error(dense(found.view()), K) < 1e-13);
  const InputRows copy = all;
  kernel_matrix<double>(*kernel, all, copy, found.view(), two);
  CHECK(relative_error(dense(found.view()), K) < 1e-13);
  VectorXd diagonal(rows);
  kernel->diag(all, diagonal.data());
  CHECK(relative_error(diagonal, K.diagonal()) < 1e-13);
  const MatrixXd Q = symmetric(rows, 12);
  const VectorXd q = Random(13).matrix(rows, 1);
  VectorXd gradient(5), diagonal_gradient = VectorXd::Zero(5);
  kernel_gradient(*kernel, all, all, as_matrix(Q).view(), gradient.data(), two);
  kernel->diag_gradient(all, q.data(), diagonal_gradient.data());
  for (std::size_t k = 0; k < 5; ++k) {
    std::vector<double> above = mixed_logs, below = mixed_logs;
    above[k] += 1e-5;
    below[k] -= 1e-5;
    const MatrixXd difference = (mixed_matrix(inputs, above) - mixed_matrix(inputs, below)) / 2e-5;
    CAPTURE(k);
    CHECK(gradient(static_cast<Index>(k)) == doctest::Approx(Q.cwiseProduct(difference).sum()).epsilon(1e-6));
    CHECK(diagonal_gradient(static_cast<Index>(k)) ==
          doctest::Approx(q.dot(difference.diagonal())).epsilon(1e-6).scale(1e-3));
  }
}

TEST_CASE("kernels of blocks are fitted stored, tiled and by low rank as the matrix of their sum is") {
  const Three inputs;
  const Labels labels;
  const Matrix<double> K = as_matrix(mixed_matrix(inputs, mixed_logs));
  const InputView X = inputs.view(), values = InputView(K.view());
  for (const KernelAlgorithm algorithm : {KernelAlgorithm::gram, KernelAlgorithm::tiled, KernelAlgorithm::low_rank}) {
    for (const Precision precision : {Precision::double_, Precision::single}) {
      CAPTURE(static_cast<int>(algorithm));
      KernelSettings kernel_settings;
      kernel_settings.algorithm = algorithm;
      kernel_settings.tolerance = 0.0;
      const KernelPrior sum({make_precomputed_kernel(1.0)}, {}, &labels.tree, 0.6, values, kernel_settings);
      const KernelPrior blocks({mixed_blocks(mixed_logs)}, {}, &labels.tree, 0.6, X, kernel_settings);
      const FitSettings settings = precise(Space::automatic, precision);
      const FitResult a = fit({values, &labels.likelihood, sum.get()}, settings, Start{}, one);
      const FitResult b = fit({X, &labels.likelihood, blocks.get()}, settings, Start{}, two);
      CHECK(b.status == Status::converged);
      CHECK(b.objective == doctest::Approx(a.objective).epsilon(precision == Precision::single ? 1e-6 : 1e-9));
      REQUIRE(b.expansions.size() == 1);
      if (algorithm == KernelAlgorithm::low_rank) continue;  // its basis is a few rows
      Matrix<double> u(rows, classes), v(rows, classes);
      predict(values, {{make_precomputed_kernel(1.0), values, a.expansions[0].coefficients.view()}}, {}, nullptr,
              a.intercepts.data(), Link::softmax, Output::predictor, u.view(), one);
      predict(X, {{mixed_blocks(mixed_logs), X, b.expansions[0].coefficients.view()}}, {}, nullptr, b.intercepts.data(),
              Link::softmax, Output::predictor, v.view(), two);
      CHECK(relative_error(dense(v.view()), dense(u.view())) < (precision == Precision::single ? 1e-2 : 1e-5));
    }
  }
}

namespace {

CriterionSettings tight(Strategy strategy, Space space, Method method = Method::lbfgs,
                        Precision precision = Precision::double_) {
  CriterionSettings settings;
  settings.tolerance = settings.adjoint_tolerance = precision == Precision::double_ ? 1e-13 : 1e-6;
  settings.strategy = strategy;
  settings.space = space;
  settings.method = method;
  settings.precision = precision;
  return settings;
}

Folds three_folds() {
  Folds folds;
  Random random(4);
  for (Index i = 0; i < rows; ++i) folds.of_row.push_back(i % 10 == 9 ? -1 : random.below(3));
  folds.count = 3;
  return folds;
}

std::unique_ptr<Coupling> make_coupling(int which) {
  const TiedVariances flat{{0.8, 1.2, 0.5, 0.9}, {0, 1, 2, 3}};
  if (which == 0) return std::make_unique<IndependentCoupling>(flat);
  if (which == 1)
    return std::make_unique<TreeCoupling>(std::make_shared<const Taxonomy>(std::vector<Index>{-1, 0, 0, 1, 1, 2, 2}),
                                          TiedVariances{{0.0, 0.8, 1.2, 0.5, 0.9, 1.1, 0.4}, {-1, 0, 1, 2, 3, 4, 5}});
  return std::make_unique<FactorCoupling>(std::make_shared<const IndependentCoupling>(flat),
                                          as_matrix(Random(20).matrix(classes, 2)));
}

}  // namespace

TEST_CASE("the criterion of linear blocks and its gradient are those of the glued matrix, however it is computed") {
  const Three inputs;
  const Labels labels;
  const Padded<double> glued(inputs.glued(some));
  for (const int which : {0, 1, 2}) {
    const auto coupling = make_coupling(which);
    CrossValidation cv(inputs.view(), labels.likelihood, three_folds());
    Prior prior;
    prior.coupling = coupling.get();
    prior.intercept_variance = 0.6;
    const auto at = [&](std::vector<double> variances, const CriterionSettings& settings) {
      prior.block_variances = std::move(variances);
      return cv.evaluate(prior, settings, two);
    };
    std::vector<CriterionSettings> ways{
        tight(Strategy::stacked, Space::coefficients),
        tight(Strategy::shuffled, Space::coefficients),
        tight(Strategy::automatic, Space::weights),
        tight(Strategy::stacked, Space::coefficients, Method::lbfgs, Precision::single),
        tight(Strategy::shuffled, Space::coefficients, Method::lbfgs, Precision::single),
        tight(Strategy::automatic, Space::weights, Method::lbfgs, Precision::single)};
    if (which == 0) ways.push_back(tight(Strategy::automatic, Space::coefficients, Method::exact));
    Prior plain = prior;
    CrossValidation glued_cv(glued.view(), labels.likelihood, three_folds());
    const Criterion expected = glued_cv.evaluate(plain, ways.front(), one);
    CHECK(expected.kernel_gradient.empty());
    VectorXd differences(3);
    for (std::size_t b = 0; b < 3; ++b) {
      std::vector<double> above = some, below = some;
      above[b] *= std::exp(1e-4);
      below[b] *= std::exp(-1e-4);
      const double difference = at(above, ways.front()).value - at(below, ways.front()).value;
      differences(static_cast<Index>(b)) = difference / 2e-4;
    }
    for (const CriterionSettings& way : ways) {
      CAPTURE(which);
      CAPTURE(&way - ways.data());
      const bool single = way.precision == Precision::single;
      const Criterion found = at(some, way);
      CHECK(found.converged);
      CHECK(found.value == doctest::Approx(expected.value).epsilon(single ? 1e-4 : 1e-9));
      REQUIRE(found.kernel_gradient.size() == 1);
      REQUIRE(found.kernel_gradient[0].size() == 3);
      const double scale = single ? 1.0 : 1e-2;
      for (std::size_t b = 0; b < 3; ++b)
        CHECK(found.kernel_gradient[0][b] ==
              doctest::Approx(differences(static_cast<Index>(b))).epsilon(single ? 1e-2 : 1e-4).scale(scale));
      REQUIRE(found.function_gradient.size() == expected.function_gradient.size());
      for (std::size_t k = 0; k < found.function_gradient.size(); ++k)
        CHECK(found.function_gradient[k] ==
              doctest::Approx(expected.function_gradient[k]).epsilon(single ? 1e-2 : 1e-5).scale(scale));
      CHECK(found.intercept_variance_gradient ==
            doctest::Approx(expected.intercept_variance_gradient).epsilon(single ? 1e-2 : 1e-5).scale(scale));
    }
    CriterionSettings without = ways.front();
    without.kernel_gradient = false;
    CHECK(at(some, without).kernel_gradient[0].empty());
    // Variances that are not given are 1, whatever they were before.
    const Criterion ones = at(none, ways.front());
    CHECK(at({}, ways.front()).value == doctest::Approx(ones.value).epsilon(1e-12));
  }
}

TEST_CASE("the gradient by the parameters of kernels of blocks is that of the criterion") {
  const Three inputs;
  const Labels labels;
  const auto coupling = make_coupling(1);
  for (const KernelAlgorithm algorithm : {KernelAlgorithm::gram, KernelAlgorithm::tiled, KernelAlgorithm::low_rank}) {
    CAPTURE(static_cast<int>(algorithm));
    KernelSettings kernel_settings;
    kernel_settings.algorithm = algorithm;
    kernel_settings.tolerance = 0.0;
    CrossValidation cv(inputs.view(), labels.likelihood, three_folds());
    const auto at = [&](const std::vector<double>& logs) {
      const KernelPrior prior({mixed_blocks(logs)}, {}, coupling.get(), 0.6, inputs.view(), kernel_settings);
      return cv.evaluate(prior.get(), tight(Strategy::automatic, Space::automatic), two);
    };
    const Criterion found = at(mixed_logs);
    REQUIRE(found.kernel_gradient.size() == 1);
    for (std::size_t k = 0; k < mixed_logs.size(); ++k) {
      std::vector<double> above = mixed_logs, below = mixed_logs;
      above[k] += 1e-4;
      below[k] -= 1e-4;
      CAPTURE(k);
      CHECK(found.kernel_gradient[0][k] ==
            doctest::Approx((at(above).value - at(below).value) / 2e-4).epsilon(1e-4).scale(1e-2));
    }
  }
}
