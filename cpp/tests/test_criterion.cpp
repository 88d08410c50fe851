#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "background_softmax.hpp"
#include "problems.hpp"
#include "taxolearn/fit/fit.hpp"
#include "taxolearn/fit/predict.hpp"
#include "taxolearn/kernels/functions.hpp"
#include "taxolearn/likelihood/independent_logistic.hpp"
#include "taxolearn/likelihood/softmax.hpp"
#include "taxolearn/select/criterion.hpp"
#include "trees.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

constexpr Index rows = 30;
constexpr Index classes = 4;
constexpr Index fold_count = 3;

enum class Covariance { linear, shared, own };
enum class Loss { softmax, logistic, background };

/// Hyperparameters as logarithms: variances of the functions, intercept_variance, and one length scale per kernel.
struct Case {
  Padded<double> inputs;
  std::vector<std::int32_t> labels;
  std::vector<double> weights;
  std::unique_ptr<const Likelihood> owned;
  const Likelihood& likelihood;
  Folds folds;
  std::shared_ptr<const Taxonomy> taxonomy;  ///< null: a flat model
  Covariance covariance;
  KernelSettings kernel_settings;
  std::vector<Index> groups;  ///< of the functions' variances; empty: each is a parameter

  Case(bool tree, Covariance covariance_, Loss loss = Loss::softmax)
      : inputs(Random(1).matrix(rows, 3)),
        labels(Random(2).labels(rows, classes)),
        weights(Random(3).weights(rows)),
        owned(make_likelihood(loss)),
        likelihood(*owned),
        covariance(covariance_) {
    if (tree) taxonomy = std::make_shared<const Taxonomy>(std::vector<Index>{-1, 0, 0, 1, 1, 2, 2});
    Random random(4);
    for (Index i = 0; i < rows; ++i) folds.of_row.push_back(i % 10 == 9 ? -1 : random.below(fold_count));
    folds.count = fold_count;
  }

  std::unique_ptr<const Likelihood> make_likelihood(Loss loss) const {
    if (loss == Loss::softmax) return std::make_unique<Softmax>(labels.data(), rows, classes, weights.data());
    if (loss == Loss::background) return std::make_unique<BackgroundSoftmax>(labels, classes, weights);
    return std::make_unique<IndependentLogistic>(labels.data(), rows, classes, weights.data());
  }

  InputView X() const { return inputs.view(); }
  Index functions() const { return taxonomy == nullptr ? classes : taxonomy->nodes() - 1; }
  Index kernels() const { return covariance == Covariance::linear ? 0 : covariance == Covariance::shared ? 1 : 2; }
  Index parameters() const { return functions() + 1 + kernels(); }

  std::vector<double> theta() const {
    Random random(5);
    std::vector<double> out;
    for (Index k = 0; k < parameters(); ++k) out.push_back(random.uniform() - 0.25);
    return out;
  }

  std::unique_ptr<Coupling> coupling(const std::vector<double>& at) const {
    TiedVariances tied;
    if (taxonomy != nullptr) {
      tied.variances.push_back(0.0);
      tied.groups.push_back(-1);
    }
    for (Index k = 0; k < functions(); ++k) {
      tied.variances.push_back(std::exp(at[static_cast<std::size_t>(k)]));
      tied.groups.push_back(groups.empty() ? k : groups[static_cast<std::size_t>(k)]);
    }
    if (taxonomy == nullptr) return std::make_unique<IndependentCoupling>(tied);
    return std::make_unique<TreeCoupling>(taxonomy, tied);
  }

  Criterion evaluate(CrossValidation& cv, const std::vector<double>& at, const CriterionSettings& settings,
                     const Execution& execution = one) const {
    const auto held = coupling(at);
    std::vector<std::shared_ptr<const Kernel>> functions_of_inputs;
    Prior prior;
    prior.coupling = held.get();
    prior.intercept_variance = std::exp(at[static_cast<std::size_t>(functions())]);
    for (Index l = 0; l < kernels(); ++l)
      functions_of_inputs.push_back(make_stationary_kernel(
          StationaryForm::rbf, {std::exp(at[static_cast<std::size_t>(functions() + 1 + l)])}, 1.0, 1.0));
    if (covariance == Covariance::own) {
      for (Index k = 0; k < functions(); ++k) prior.kernel_of.push_back(k % 2);
    }
    std::unique_ptr<KernelMatrices> matrices;
    if (kernels() > 0) matrices = std::make_unique<KernelMatrices>(functions_of_inputs, X(), kernel_settings);
    prior.kernels = matrices.get();
    return cv.evaluate(prior, settings, execution);
  }

  Criterion evaluate(const std::vector<double>& at, const CriterionSettings& settings) const {
    CrossValidation cv(X(), likelihood, folds);
    return evaluate(cv, at, settings);
  }

  /// In the order of theta.
  std::vector<double> gradient(const Criterion& criterion) const {
    std::vector<double> out = criterion.function_gradient;
    out.push_back(criterion.intercept_variance_gradient);
    for (const auto& each : criterion.kernel_gradient) out.push_back(each.front());
    return out;
  }
};

CriterionSettings tight(Strategy strategy = Strategy::automatic, Space space = Space::automatic,
                        Method method = Method::lbfgs) {
  CriterionSettings settings;
  settings.tolerance = settings.adjoint_tolerance = 1e-13;
  settings.strategy = strategy;
  settings.space = space;
  settings.method = method;
  settings.precision = Precision::double_;
  return settings;
}

/// Predictors of held-out rows by one plain fit per fold, with the linear kernel; zero for other rows.
Matrix<double> predictors_of_separate_fits(const Case& problem, const std::vector<double>& theta) {
  const auto coupling = problem.coupling(theta);
  const MatrixXd all = dense(problem.inputs.view());
  Matrix<double> predictors(rows, classes);
  for (Index fold = 0; fold < fold_count; ++fold) {
    const std::vector<Index> in = problem.folds.trained(fold);
    const std::vector<Index> out = problem.folds.held_out(fold);
    const auto inputs = [&](const std::vector<Index>& which) {
      Matrix<double> part(static_cast<Index>(which.size()), all.cols());
      for (Index i = 0; i < part.rows(); ++i) {
        for (Index j = 0; j < all.cols(); ++j) part.row(i)[j] = all(which[static_cast<std::size_t>(i)], j);
      }
      return part;
    };
    const Matrix<double> X_in = inputs(in), X_out = inputs(out);
    const auto likelihood = problem.likelihood.subset(in, std::vector<double>(in.size(), 1.0));
    Problem part;
    part.X = X_in.view();
    part.likelihood = likelihood.get();
    part.prior.coupling = coupling.get();
    part.prior.intercept_variance = std::exp(theta[static_cast<std::size_t>(problem.functions())]);
    FitSettings settings;
    settings.tolerance = 1e-14;
    const FitResult result = fit(part, settings, Start{}, one);
    Matrix<double> u(X_out.rows(), classes);
    predict(InputView(X_out.view()), result.weights.view(), result.intercepts.data(), Link::softmax, Output::predictor,
            u.view(), one);
    for (Index i = 0; i < u.rows(); ++i)
      std::copy(u.row(i), u.row(i) + classes, predictors.row(out[static_cast<std::size_t>(i)]));
  }
  return predictors;
}

/// The loss of held-out rows that have these predictors, at a temperature.
double held_out_loss(const Case& problem, Matrix<double> predictors, double temperature = 1.0) {
  std::vector<Index> all(static_cast<std::size_t>(rows));
  std::iota(all.begin(), all.end(), Index(0));
  std::vector<double> factors;
  for (const Index fold : problem.folds.of_row) factors.push_back(fold >= 0 ? 1.0 : 0.0);
  for (Index i = 0; i < rows; ++i) {
    for (Index c = 0; c < classes; ++c) predictors.row(i)[c] /= temperature;
  }
  return problem.likelihood.subset(all, factors)->residual(0, rows, predictors.data());
}

const std::array<Covariance, 3> covariances{Covariance::linear, Covariance::shared, Covariance::own};

}  // namespace

TEST_CASE("the gradient is that of the criterion, however folds are treated") {
  for (const Loss loss : {Loss::softmax, Loss::logistic, Loss::background}) {
    CAPTURE(static_cast<int>(loss));
    for (const bool tree : {false, true}) {
      for (const Covariance covariance : covariances) {
        if (loss != Loss::softmax && covariance == Covariance::own) continue;
        const Case problem(tree, covariance, loss);
        const std::vector<double> theta = problem.theta();
        std::vector<CriterionSettings> ways{tight(Strategy::stacked, Space::coefficients),
                                            tight(Strategy::shuffled, Space::coefficients)};
        if (covariance == Covariance::linear) ways.push_back(tight(Strategy::automatic, Space::weights));
        if (!tree && loss != Loss::background)
          ways.push_back(tight(Strategy::automatic, Space::coefficients, Method::exact));
        const Criterion first = problem.evaluate(theta, ways.front());
        const std::vector<double> gradient = problem.gradient(first);
        REQUIRE(first.converged);
        REQUIRE(static_cast<Index>(gradient.size()) == problem.parameters());
        for (std::size_t k = 0; k < theta.size(); ++k) {
          std::vector<double> above = theta, below = theta;
          above[k] += 1e-4;
          below[k] -= 1e-4;
          const double difference =
              (problem.evaluate(above, ways.front()).value - problem.evaluate(below, ways.front()).value) / 2e-4;
          CAPTURE(k);
          CHECK(gradient[k] == doctest::Approx(difference).epsilon(1e-4).scale(1e-2));
        }
        for (const CriterionSettings& way : ways) {
          const Criterion criterion = problem.evaluate(theta, way);
          CHECK(criterion.value == doctest::Approx(first.value).epsilon(1e-9));
          const std::vector<double> other = problem.gradient(criterion);
          const double scale = loss == Loss::background ? 0.05 : 1e-3;  // fits err by the root of their gap
          for (std::size_t k = 0; k < theta.size(); ++k)
            CHECK(other[k] == doctest::Approx(gradient[k]).epsilon(1e-5).scale(scale));
        }
      }
    }
  }
}

TEST_CASE("the derivative by a variance that functions share is the sum of theirs, in either space and by any kernel") {
  for (const bool tree : {false, true}) {
    for (const Covariance covariance : covariances) {
      for (const Space space : {Space::coefficients, Space::weights}) {
        if (space == Space::weights && covariance != Covariance::linear) continue;
        CAPTURE(tree);
        CAPTURE(static_cast<int>(covariance));
        Case problem(tree, covariance);
        const std::vector<double> theta = problem.theta();
        const std::vector<double> alone = problem.evaluate(theta, tight(Strategy::stacked, space)).function_gradient;
        std::vector<double> sums(2, 0.0);
        for (Index k = 0; k < problem.functions(); ++k) {
          problem.groups.push_back(k % 3 - 1);
          if (k % 3 > 0) sums[static_cast<std::size_t>(k % 3 - 1)] += alone[static_cast<std::size_t>(k)];
        }
        const std::vector<double> shared = problem.evaluate(theta, tight(Strategy::stacked, space)).function_gradient;
        REQUIRE(shared.size() == sums.size());
        for (std::size_t k = 0; k < sums.size(); ++k) CHECK(shared[k] == doctest::Approx(sums[k]).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("the criterion is the loss of fits that never saw the rows they are judged by") {
  const Case problem(true, Covariance::linear);
  const std::vector<double> theta = problem.theta();
  const double loss = held_out_loss(problem, predictors_of_separate_fits(problem, theta));
  CHECK(problem.evaluate(theta, tight()).value == doctest::Approx(loss).epsilon(1e-6));
}

TEST_CASE("predictors that are kept are those of separate fits, at any temperature") {
  for (const Loss loss : {Loss::softmax, Loss::logistic}) {
    for (const bool tree : {false, true}) {
      const Case problem(tree, Covariance::linear, loss);
      const std::vector<double> theta = problem.theta();
      const Matrix<double> expected = predictors_of_separate_fits(problem, theta);
      std::vector<CriterionSettings> ways{tight(Strategy::stacked, Space::coefficients),
                                          tight(Strategy::shuffled, Space::coefficients),
                                          tight(Strategy::automatic, Space::weights)};
      if (!tree) ways.push_back(tight(Strategy::automatic, Space::coefficients, Method::exact));
      for (CriterionSettings& way : ways) {
        for (const bool gradient : {false, true}) {
          for (const bool learned : {false, true}) {
            if (learned && loss != Loss::softmax) continue;  // temperatures are for rows with one class
            CAPTURE(static_cast<int>(loss));
            CAPTURE(tree);
            CAPTURE(&way - ways.data());
            CAPTURE(gradient);
            CAPTURE(learned);
            way.keep_predictors = true;
            way.gradient = gradient;
            way.learn_temperature = learned;
            const Criterion found = problem.evaluate(theta, way);
            REQUIRE(found.predictors.rows() == rows);
            REQUIRE(found.predictors.cols() == classes);
            double error = 0.0;
            for (Index i = 0; i < rows; ++i) {
              for (Index c = 0; c < classes; ++c) {
                error = std::max(error, std::abs(found.predictors.row(i)[c] - expected.row(i)[c]));
                if (problem.folds.of_row[static_cast<std::size_t>(i)] < 0) CHECK(found.predictors.row(i)[c] == 0.0);
              }
            }
            CHECK(error < 1e-5);
            CHECK((found.temperature != 1.0) == learned);
            const double penalty = 0.5 * std::log(found.temperature) * std::log(found.temperature);
            CHECK(found.value ==
                  doctest::Approx(held_out_loss(problem, expected, found.temperature) + penalty).epsilon(1e-6));
          }
        }
      }
    }
  }
}

TEST_CASE("without its gradient the criterion has the same plain value, and predictors are kept only if asked for") {
  for (const Covariance covariance : covariances) {
    for (const bool learned : {false, true}) {
      for (const Strategy strategy : {Strategy::stacked, Strategy::shuffled}) {
        CAPTURE(static_cast<int>(covariance));
        CAPTURE(learned);
        const Case problem(true, covariance);
        CriterionSettings settings = tight(strategy, Space::coefficients);
        settings.learn_temperature = learned;
        if (!learned) settings.tolerance = 1e-3;  // fits to a learned one go on with the systems
        const Criterion whole = problem.evaluate(problem.theta(), settings);
        settings.gradient = false;
        const Criterion plain = problem.evaluate(problem.theta(), settings);
        CHECK(plain.plain_value == doctest::Approx(whole.plain_value).epsilon(learned ? 1e-6 : 1e-12));
        CHECK(plain.value == plain.plain_value);
        CHECK(plain.temperature == whole.temperature);
        CHECK(plain.products < whole.products);
        CHECK(plain.predictors.rows() == 0);
        settings.keep_predictors = true;
        const Criterion keeping = problem.evaluate(problem.theta(), settings);
        CHECK(keeping.value == plain.value);
        const double penalty = 0.5 * std::log(keeping.temperature) * std::log(keeping.temperature);
        CHECK(held_out_loss(problem, keeping.predictors, keeping.temperature) + penalty ==
              doctest::Approx(keeping.value).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("the correction takes the error of early stopped fits from the first to the second order") {
  const Case problem(false, Covariance::shared);
  std::vector<double> theta = problem.theta();
  CriterionSettings settings = tight(Strategy::stacked);
  settings.tolerance = 1e-3;
  settings.adjoint_tolerance = 1e-8;
  double error = 0.0;
  double plain_error = 0.0;
  Criterion loose;
  for (int k = 0; k < 6; ++k) {
    theta.front() += 0.3;
    const double truth = problem.evaluate(theta, tight()).value;
    loose = problem.evaluate(theta, settings);
    error += std::abs(loose.value - truth);
    plain_error += std::abs(loose.plain_value - truth);
  }
  CHECK(error < 0.2 * plain_error);
  settings.gradient = false;
  const Criterion plain = problem.evaluate(theta, settings);
  CHECK(plain.value == plain.plain_value);
  CHECK(plain.value == doctest::Approx(loose.plain_value));
  CHECK(plain.function_gradient.empty());
}

TEST_CASE("evaluations start from the accepted points, and are the same for any number of threads") {
  for (const Strategy strategy : {Strategy::stacked, Strategy::shuffled}) {
    const Case problem(true, Covariance::own);
    const std::vector<double> theta = problem.theta();
    CriterionSettings settings = tight(strategy);
    settings.tolerance = settings.adjoint_tolerance = 1e-8;
    CrossValidation cv(problem.X(), problem.likelihood, problem.folds);
    const Criterion cold = problem.evaluate(cv, theta, settings);
    const Criterion again = problem.evaluate(cv, theta, settings);
    CHECK(again.products == cold.products);
    CHECK(again.value == cold.value);
    cv.accept();
    const Criterion warm = problem.evaluate(cv, theta, settings, Execution{2, nullptr});
    CHECK(warm.products < cold.products / 2);
    CHECK(warm.value == doctest::Approx(cold.value));
    CrossValidation restored(problem.X(), problem.likelihood, problem.folds);
    restored.restore(cv.accepted());
    CHECK(problem.evaluate(restored, theta, settings).value == warm.value);
    restored.restore(WarmStart{Buffer<float>(5, 1.0f), {}});  // of another problem: not used
    CHECK(problem.evaluate(restored, theta, settings).value == cold.value);
  }
}

TEST_CASE("with little memory folds take turns") {
  Case problem(false, Covariance::shared);
  CriterionSettings settings = tight(Strategy::stacked);
  const Criterion together = problem.evaluate(problem.theta(), settings);
  problem.kernel_settings.algorithm = KernelAlgorithm::tiled;
  problem.kernel_settings.memory_limit = settings.memory_limit = 1.0;
  const Criterion apart = problem.evaluate(problem.theta(), settings);
  CHECK(apart.value == doctest::Approx(together.value).epsilon(1e-9));
  CHECK(apart.counters.algorithm == "tiled");
}

TEST_CASE("an evaluation that was stopped leaves the accepted points alone") {
  class Impatient final : public Monitor {
   public:
    bool interrupted() override { return true; }
    void progress(const Progress&) override { stop(); }
  };
  const Case problem(false, Covariance::shared);
  CrossValidation cv(problem.X(), problem.likelihood, problem.folds);
  problem.evaluate(cv, problem.theta(), tight());
  cv.accept();
  const WarmStart before = cv.accepted();
  std::vector<double> elsewhere = problem.theta();
  elsewhere.front() += 2.0;
  Impatient monitor;
  CHECK_THROWS_AS(problem.evaluate(cv, elsewhere, tight(), Execution{1, &monitor}), Interrupted);
  CHECK(cv.accepted().fits == before.fits);
  CHECK(problem.evaluate(cv, problem.theta(), tight()).converged);
}

TEST_CASE("what does not fit together is refused") {
  const Case problem(false, Covariance::linear);
  const auto cv_of = [&](const Folds& folds) { CrossValidation(problem.X(), problem.likelihood, folds); };
  CHECK(contains(rejection([&] { cv_of({{0, 1}, 2}); }), "fold_of has 2 elements, expected 30"));
  Folds folds = problem.folds;
  folds.of_row[3] = 7;
  CHECK(contains(rejection([&] { cv_of(folds); }), "fold_of contains 7"));
  folds = problem.folds;
  folds.count = 4;
  CHECK(contains(rejection([&] { cv_of(folds); }), "holds out 0 of 30 rows"));
  CrossValidation cv(problem.X(), problem.likelihood, problem.folds);
  CHECK(contains(rejection([&] { cv.accept(); }), "no evaluation"));
  const auto coupling = problem.coupling(problem.theta());
  Prior prior;
  CHECK(contains(rejection([&] { cv.evaluate(prior, tight(), one); }), "no coupling"));
  prior.coupling = coupling.get();
  prior.intercept_variance = -1.0;
  CHECK(contains(rejection([&] { cv.evaluate(prior, tight(), one); }), "intercept_variance"));
  prior.intercept_variance = 1.0;
  prior.kernel_of = {0};
  CHECK(contains(rejection([&] { cv.evaluate(prior, tight(), one); }), "assigned to 1 functions"));
  prior.kernel_of.clear();
  prior.variance = 2.0;
  CHECK(contains(rejection([&] { cv.evaluate(prior, tight(), one); }), "variance 2, expected 1"));
  prior.variance = 1.0;
  const Padded<double> others(Random(1).matrix(rows + 1, 3));
  const InputView elsewhere = others.view();
  KernelMatrices matrices({make_stationary_kernel(StationaryForm::rbf, {1.0}, 1.0, 1.0)}, elsewhere, {});
  prior.kernels = &matrices;
  CHECK(contains(rejection([&] { cv.evaluate(prior, tight(), one); }), "over 31 rows, expected 30"));
  prior.kernels = nullptr;
  CHECK(contains(
      rejection([&] { cv.evaluate(prior, tight(Strategy::automatic, Space::automatic, Method::newton), one); }),
      "\"lbfgs\" or \"exact\""));
  const Case tree(true, Covariance::linear);
  CHECK(contains(
      rejection([&] { tree.evaluate(tree.theta(), tight(Strategy::automatic, Space::automatic, Method::exact)); }),
      "flat"));
  const Case background(false, Covariance::shared, Loss::background);
  CHECK(contains(rejection([&] {
                   background.evaluate(background.theta(), tight(Strategy::automatic, Space::automatic, Method::exact));
                 }),
                 "method \"exact\" is for likelihoods"));
}

TEST_CASE("the gradient at a given and at the best temperature is that of the criterion") {
  for (const Loss loss : {Loss::softmax, Loss::logistic}) {
    for (const bool learned : {false, true}) {
      for (const Strategy strategy : {Strategy::stacked, Strategy::shuffled}) {
        for (const Covariance covariance : {Covariance::linear, Covariance::shared}) {
          const Case problem(true, covariance, loss);
          const Softmax one_class(problem.labels.data(), rows, classes, problem.weights.data());
          CriterionSettings settings = tight(strategy, Space::coefficients);
          settings.temperature = 0.7;
          settings.learn_temperature = learned;
          const auto value = [&](const std::vector<double>& at, double log_t) {
            CriterionSettings there = settings;
            there.temperature *= std::exp(log_t);
            CrossValidation cv(problem.X(), problem.likelihood, problem.folds, &one_class);
            return problem.evaluate(cv, at, there);
          };
          const std::vector<double> theta = problem.theta();
          const Criterion found = value(theta, 0.0);
          REQUIRE(found.converged);
          constexpr double step = 1e-4;
          const std::vector<double> gradient = problem.gradient(found);
          for (std::size_t k = 0; k < theta.size(); ++k) {
            std::vector<double> above = theta, below = theta;
            above[k] += step;
            below[k] -= step;
            const double difference = (value(above, 0.0).value - value(below, 0.0).value) / (2.0 * step);
            CHECK(gradient[k] == doctest::Approx(difference).epsilon(1e-5).scale(1.0));
          }
          if (learned) {
            CHECK(found.temperature != settings.temperature);
            CHECK(std::abs(found.temperature_gradient) < 1e-5);
          } else {
            const double difference = (value(theta, step).value - value(theta, -step).value) / (2.0 * step);
            CHECK(found.temperature_gradient == doctest::Approx(difference).epsilon(1e-6).scale(1.0));
            CHECK(found.temperature == settings.temperature);
          }
        }
      }
    }
  }
}

TEST_CASE("a temperature must be positive, and the loss of held-out rows of the same size") {
  const Case problem(false, Covariance::linear);
  CriterionSettings settings = tight();
  settings.temperature = 0.0;
  CHECK_THROWS_AS(problem.evaluate(problem.theta(), settings), InvalidArgument);
  const Softmax fewer(problem.labels.data(), rows - 1, classes, nullptr);
  CHECK_THROWS_AS(CrossValidation(problem.X(), problem.likelihood, problem.folds, &fewer), InvalidArgument);
}
