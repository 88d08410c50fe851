// Sums of kernels over blocks of the inputs, and the criterion of blocks.

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "blocks.hpp"
#include "operators.hpp"
#include "taxolearn/couplings/factors.hpp"
#include "taxolearn/couplings/independent.hpp"
#include "taxolearn/fit/fit.hpp"
#include "taxolearn/fit/predict.hpp"
#include "taxolearn/operators/block_sum.hpp"
#include "taxolearn/operators/kernel_matrices.hpp"
#include "taxolearn/operators/tiled.hpp"
#include "taxolearn/select/criterion.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

constexpr Index rows = block_rows;
constexpr Index classes = block_classes;

/// Some rows.
Matrix<double> picked(const MatrixXd& from, const std::vector<Index>& which) {
  MatrixXd out(static_cast<Index>(which.size()), from.cols());
  for (Index i = 0; i < out.rows(); ++i) out.row(i) = from.row(which[static_cast<std::size_t>(i)]);
  return as_matrix(out);
}

CriterionSettings tight(Strategy strategy, Space space, Method method = Method::lbfgs,
                        Precision precision = Precision::double_) {
  CriterionSettings settings;
  settings.tolerance = settings.adjoint_tolerance = precision == Precision::double_ ? 1e-15 : 1e-6;
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

TEST_CASE_TEMPLATE("the operator of partly linear blocks is the matrix of their sum, also of some rows", T, float,
                   double) {
  const Three inputs;
  const auto kernel = mixed_blocks(mixed_logs);
  CHECK(is_partly_linear(*kernel));
  CHECK_FALSE(is_partly_linear(*linear_blocks(some)));
  CHECK_FALSE(is_partly_linear(*make_linear_kernel(1.0)));
  const InputView view = inputs.view();
  const auto rest = [&] {
    return std::make_unique<Tiled<T>>(other_kernels(*kernel), other_blocks(*kernel, view), two);
  };
  BlockSum<T> op(kernel, InputRows{view, {}}, rest(), two);
  const MatrixXd M = mixed_matrix(inputs, mixed_logs);
  Random random(8);
  for (const Index m : {1, 3, 40}) check_products<T>(op, M, m, random);
  VectorXd diagonal(rows);
  op.diag(diagonal.data());
  CHECK(relative_error(diagonal, M.diagonal()) < 1e-12);
  const MatrixXd E = random.matrix(rows, 3), F = random.matrix(rows, 3);
  CHECK(relative_error(apply_cross<T>(op, inputs.view(), F, two), times(M, F)) < tolerance<T>);
  Tiled<T> slow(kernel, inputs.view(), one);
  CHECK(relative_error(bilinear_grad<T>(op, E, F, two), bilinear_grad<T>(slow, E, F, one)) < 1e-5);
  const std::vector<Index> chosen{4, 29, 0, 7, 13};
  MatrixXd part(5, 5);
  for (Index i = 0; i < 5; ++i) {
    for (Index j = 0; j < 5; ++j)
      part(i, j) = M(chosen[static_cast<std::size_t>(i)], chosen[static_cast<std::size_t>(j)]);
  }
  check_products<T>(*op.subset(chosen, two), part, 3, random);
  const InputRows single{inputs.words.sparse(), {}};
  CHECK(contains(rejection([&] { BlockSum<T>(kernel, single, rest(), one); }), "do not have 3 blocks"));
  CHECK(contains(rejection([&] { other_blocks(*kernel, single.X); }), "0 blocks, expected 3"));
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
      const KernelPrior sum({make_precomputed_kernel(1.0)}, {}, &labels.tree, 0.6, values, {});
      const KernelPrior blocks({mixed_blocks(mixed_logs)}, {}, &labels.tree, 0.6, X, kernel_settings);
      const FitSettings settings = precise(Space::automatic, precision);
      const FitResult a = fit({values, &labels.likelihood, sum.get()}, settings, Start{}, one);
      const FitResult b = fit({X, &labels.likelihood, blocks.get()}, settings, Start{}, two);
      CHECK(b.status == Status::converged);
      CHECK(b.objective == doctest::Approx(a.objective).epsilon(precision == Precision::single ? 1e-6 : 1e-9));
      REQUIRE(b.expansions.size() == 1);
      const Expansion& found = b.expansions[0];
      Matrix<double> u(rows, classes), v(rows, classes);
      predict(values, {{make_precomputed_kernel(1.0), values, a.expansions[0].coefficients.view()}}, {}, nullptr,
              a.intercepts.data(), Link::softmax, Output::predictor, u.view(), one);
      // Of a low rank, the basis is some rows, and words have weights: it does not matter what is in them there.
      const bool approximate = algorithm == KernelAlgorithm::low_rank;
      CHECK(found.weights.rows() == (approximate ? 25 : 0));
      const Matrix<double> words(found.coefficients.rows(), 25), numbers = picked(inputs.numbers.X, found.basis),
                                                                 more = picked(inputs.more.X, found.basis);
      const InputView basis = approximate ? side_by_side({words.view(), numbers.view(), more.view()}) : X;
      predict(X, {{mixed_blocks(mixed_logs), basis, found.coefficients.view(), found.weights.view()}}, {}, nullptr,
              b.intercepts.data(), Link::softmax, Output::predictor, v.view(), two);
      CHECK(relative_error(dense(v.view()), dense(u.view())) < (precision == Precision::single ? 1e-2 : 1e-5));
    }
  }
}

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

TEST_CASE("weights that do not fit the linear blocks are rejected") {
  const Three inputs;
  const InputView X = inputs.view();
  const Matrix<double> coefficients(rows, classes), weights(25, classes), wrong(24, classes);
  const std::vector<double> intercepts(classes, 0.0);
  Matrix<double> out(rows, classes);
  const auto reject = [&](const std::shared_ptr<const Kernel>& kernel, const Matrix<double>& of_linear) {
    const Term term{kernel, X, coefficients.view(), of_linear.view()};
    return rejection(
        [&] { predict(X, {term}, {}, nullptr, intercepts.data(), Link::softmax, Output::predictor, out.view(), one); });
  };
  CHECK(reject(mixed_blocks(mixed_logs), weights).empty());
  CHECK(contains(reject(mixed_blocks(mixed_logs), wrong), "weights has shape (24, 4), expected (25, 4)"));
  CHECK(contains(reject(linear_blocks(some), weights), "no linear block beside"));
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
