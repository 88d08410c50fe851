#include <doctest/doctest.h>

#include "taxolearn/couplings/factors.hpp"
#include "taxolearn/fit/certificate.hpp"
#include "taxolearn/fit/fit.hpp"
#include "taxolearn/kernels/functions.hpp"
#include "taxolearn/likelihood/softmax.hpp"
#include "taxolearn/select/criterion.hpp"
#include "trees.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

enum class Base { none, diagonal, tree };
const std::vector<Base> bases{Base::none, Base::diagonal, Base::tree};

/// Seven nodes, four of them classes; a parameter per function.
std::shared_ptr<const Taxonomy> small_tree() {
  return std::make_shared<const Taxonomy>(std::vector<Index>{-1, 0, 0, 1, 1, 2, 2});
}

/// Parameters: log variances of the base's functions, then the loadings.
struct Parts {
  Base base;
  Index classes = 4;
  Index rank;

  Index functions() const { return base == Base::none ? 0 : base == Base::diagonal ? classes : 6; }
  Index parameters() const { return functions() + classes * rank; }

  std::vector<double> theta() const {
    Random random(5);
    std::vector<double> out;
    for (Index k = 0; k < parameters(); ++k) out.push_back(2.0 * random.uniform() - 1.0);
    return out;
  }

  MatrixXd loadings(const std::vector<double>& at) const {
    MatrixXd out(classes, rank);
    for (Index c = 0; c < classes; ++c)
      for (Index k = 0; k < rank; ++k) out(c, k) = at[static_cast<std::size_t>(functions() + c * rank + k)];
    return out;
  }

  std::shared_ptr<const Coupling> base_at(const std::vector<double>& at) const {
    TiedVariances tied;
    if (base == Base::tree) tied = {{0.0}, {-1}};
    for (Index k = 0; k < functions(); ++k) {
      tied.variances.push_back(std::exp(at[static_cast<std::size_t>(k)]));
      tied.groups.push_back(k);
    }
    if (base == Base::none) return nullptr;
    if (base == Base::diagonal) return std::make_shared<IndependentCoupling>(tied);
    return std::make_shared<TreeCoupling>(small_tree(), tied);
  }

  std::unique_ptr<Coupling> make(const std::vector<double>& at) const {
    return std::make_unique<FactorCoupling>(base_at(at), as_matrix(loadings(at)));
  }

  /// R with R R^T = G.
  MatrixXd root(const std::vector<double>& at) const {
    MatrixXd out(classes, (base == Base::none ? 0 : functions()) + rank);
    if (const auto inner = base_at(at)) {
      const MatrixXd units = MatrixXd::Identity(functions(), functions());
      Matrix<double> rows(functions(), classes);
      inner->from_factors(functions(), as_matrix(units).data(), rows.data());
      out.leftCols(functions()) = dense(rows.view()).transpose();
    }
    out.rightCols(rank) = loadings(at);
    return out;
  }
};

/// The derivative by parameter k of a function of all of them.
template <class Value>
double difference(const std::vector<double>& theta, std::size_t k, double h, const Value& value) {
  std::vector<double> above = theta, below = theta;
  above[k] += h;
  below[k] -= h;
  return (value(above) - value(below)) / (2.0 * h);
}

}  // namespace

TEST_CASE("a coupling by factors against its dense root, over no other coupling, independent classes and a tree") {
  constexpr Index rows = 35;
  for (const Base base : bases) {
    for (const Index rank : {1, 3, 4}) {
      CAPTURE(static_cast<int>(base));
      CAPTURE(rank);
      const Parts parts{base, 4, rank};
      const std::vector<double> theta = parts.theta();
      const auto coupling = parts.make(theta);
      const MatrixXd R = parts.root(theta);
      const MatrixXd G = R * R.transpose();
      check_products(*coupling, R, 7);
      REQUIRE(coupling->parameters() == parts.parameters());
      CHECK(coupling->parameter_of_factor().empty());
      Random random(8);
      const MatrixXd S = random.matrix(rows, parts.classes), H = random.matrix(rows, parts.classes);
      std::vector<double> gradient(theta.size(), 0.0);
      coupling->bilinear_grad(rows, as_matrix(S).data(), as_matrix(H).data(), gradient.data());
      for (std::size_t k = 0; k < theta.size(); ++k) {
        const double slope = difference(theta, k, 1e-5, [&](const std::vector<double>& at) {
          Matrix<double> product = as_matrix(H);
          parts.make(at)->apply(rows, product.data());
          return (S.array() * dense(product.view()).array()).sum();
        });
        CHECK(gradient[k] == doctest::Approx(slope).epsilon(1e-7).scale(G.norm()));
      }
    }
  }
}

TEST_CASE("the criterion's gradient by loadings, in either space and however folds are treated") {
  constexpr Index rows = 30;
  constexpr Index classes = 4;
  const Padded<double> inputs(Random(1).matrix(rows, 3));
  const InputView X = inputs.view();
  const std::vector<std::int32_t> labels = Random(2).labels(rows, classes);
  const std::vector<double> weights = Random(3).weights(rows);
  const Softmax likelihood(labels.data(), rows, classes, weights.data());
  Folds folds;
  folds.count = 3;
  for (Index i = 0; i < rows; ++i) folds.of_row.push_back(i % 10 == 9 ? -1 : i % 3);
  for (const bool linear : {true, false}) {
    for (const Base base : bases) {
      CAPTURE(linear);
      CAPTURE(static_cast<int>(base));
      const Parts parts{base, classes, 2};
      const std::vector<double> theta = parts.theta();
      CriterionSettings settings;
      settings.tolerance = settings.adjoint_tolerance = 1e-13;
      settings.precision = Precision::double_;
      const auto evaluate = [&](const std::vector<double>& at, Strategy strategy, Space space) {
        CrossValidation cv(X, likelihood, folds);
        const auto coupling = parts.make(at);
        KernelMatrices matrices({make_stationary_kernel(StationaryForm::rbf, {1.2}, 2.0, 1.0)}, X, {});
        Prior prior;
        prior.coupling = coupling.get();
        if (!linear) prior.kernels = &matrices;
        CriterionSettings chosen = settings;
        chosen.strategy = strategy;
        chosen.space = space;
        return cv.evaluate(prior, chosen, two);
      };
      const Criterion first = evaluate(theta, Strategy::stacked, Space::coefficients);
      REQUIRE(first.converged);
      REQUIRE(first.function_gradient.size() == theta.size());
      for (std::size_t k = 0; k < theta.size(); ++k) {
        CAPTURE(k);
        const double slope = difference(theta, k, 1e-4, [&](const std::vector<double>& at) {
          return evaluate(at, Strategy::stacked, Space::coefficients).value;
        });
        CHECK(first.function_gradient[k] == doctest::Approx(slope).epsilon(1e-4).scale(1e-2));
      }
      std::vector<Criterion> others{evaluate(theta, Strategy::shuffled, Space::coefficients)};
      if (linear) others.push_back(evaluate(theta, Strategy::automatic, Space::weights));
      for (const Criterion& other : others) {
        CHECK(other.value == doctest::Approx(first.value).epsilon(1e-9));
        CHECK(other.intercept_variance_gradient ==
              doctest::Approx(first.intercept_variance_gradient).epsilon(1e-5).scale(1e-3));
        for (std::size_t k = 0; k < theta.size(); ++k)
          CHECK(other.function_gradient[k] == doctest::Approx(first.function_gradient[k]).epsilon(1e-5).scale(1e-3));
      }
    }
  }
}

TEST_CASE("a prior of low rank: fits come to the certified minimum, and certificates are true") {
  constexpr Index rows = 40;
  constexpr Index classes = 4;
  const Inputs inputs(rows, 6, 4, 1);
  const std::vector<std::int32_t> labels = Random(2).labels(rows, classes);
  const std::vector<double> weights = Random(3).weights(rows);
  const Softmax likelihood(labels.data(), rows, classes, weights.data());
  for (const Base base : bases) {
    for (const double intercept_variance : {0.0, 2.0}) {
      const Parts parts{base, classes, 2};
      const std::vector<double> theta = parts.theta();
      const auto coupling = parts.make(theta);
      const CoupledProblem oracle(
          DenseProblem(inputs.X, one_hot(labels, classes), Eigen::Map<const VectorXd>(weights.data(), rows), 1.5,
                       intercept_variance),
          parts.root(theta));
      const double minimum = oracle.objective(oracle.minimizer());
      Problem problem;
      problem.X = inputs.views[2];
      problem.likelihood = &likelihood;
      problem.prior.variance = 1.5;
      problem.prior.intercept_variance = intercept_variance;
      problem.prior.coupling = coupling.get();
      for (const Space space : {Space::coefficients, Space::weights}) {
        for (const int iterations : {1, 3, 1000}) {
          CAPTURE(static_cast<int>(base));
          CAPTURE(intercept_variance);
          CAPTURE(iterations);
          FitSettings settings;
          settings.space = space;
          settings.precision = Precision::double_;
          settings.tolerance = 1e-11;
          settings.max_iterations = iterations;
          const FitResult result = fit(problem, settings, Start(), two);
          const double distance = result.objective - minimum;
          CHECK(distance >= -1e-12 * minimum);
          CHECK(distance <= result.gap + 1e-12 * minimum);
          CHECK((iterations > 3) == (result.status == Status::converged));
        }
      }
    }
  }
}

TEST_CASE("errors name the position of bad loadings") {
  const auto base = std::make_shared<IndependentCoupling>(TiedVariances{{1.0, 1.0}, {}});
  const auto message = [&](const MatrixXd& loadings) {
    return rejection([&] { FactorCoupling(base, as_matrix(loadings)); });
  };
  MatrixXd loadings = MatrixXd::Ones(2, 1);
  CHECK(message(loadings).empty());
  CHECK(message(MatrixXd::Ones(3, 1)) == "loadings has 3 rows, expected 2, one per class");
  CHECK(contains(message(MatrixXd(2, 0)), "loadings has the shape (2, 0)"));
  loadings(1, 0) = std::nan("");
  CHECK(contains(message(loadings), "loadings[1, 0] is nan"));
}

TEST_CASE("loadings go with one kernel for all, and not with exact steps") {
  constexpr Index rows = 12;
  const Padded<double> inputs(Random(1).matrix(rows, 3));
  const std::vector<std::int32_t> labels = Random(2).labels(rows, 4);
  const Softmax likelihood(labels.data(), rows, 4, nullptr);
  Folds folds;
  folds.count = 2;
  for (Index i = 0; i < rows; ++i) folds.of_row.push_back(i % 2);
  const Parts parts{Base::none, 4, 4};
  const auto coupling = parts.make(parts.theta());
  const auto message = [&](bool own, Method method) {
    CrossValidation cv(inputs.view(), likelihood, folds);
    KernelMatrices matrices({make_stationary_kernel(StationaryForm::rbf, {1.0}, 1.0, 1.0),
                             make_stationary_kernel(StationaryForm::rbf, {2.0}, 1.0, 1.0)},
                            inputs.view(), {});
    Prior prior;
    prior.coupling = coupling.get();
    if (own) prior.kernels = &matrices;
    if (own) prior.kernel_of = {0, 1, 0, 1};
    CriterionSettings settings;
    settings.method = method;
    return rejection([&] { cv.evaluate(prior, settings, one); });
  };
  CHECK(message(false, Method::lbfgs).empty());
  CHECK(contains(message(true, Method::lbfgs), "variances of functions"));
  CHECK(contains(message(false, Method::exact), "flat models"));
}
