#include <doctest/doctest.h>

#include "background_softmax.hpp"
#include "problems.hpp"
#include "taxolearn/fit/fit.hpp"
#include "taxolearn/fit/predict.hpp"
#include "taxolearn/kernels/functions.hpp"
#include "taxolearn/likelihood/independent_logistic.hpp"
#include "taxolearn/likelihood/softmax.hpp"
#include "trees.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

constexpr Index rows = 24;
constexpr Index classes = 4;
constexpr double sigma2 = 1.5;
constexpr double variance = 2.0;  // of the linear kernel
constexpr double length_scale = 0.8;

/// Minimizes f(K alpha) + 1/2 alpha . K alpha for any likelihood, in dense algebra: Newton's method with halved steps.
/// Vectors are n C long, rows one after the other.
struct Dense {
  const Likelihood& likelihood;
  MatrixXd K;

  Matrix<double> predictors(const VectorXd& alpha) const {
    Matrix<double> u(likelihood.rows(), likelihood.outputs());
    Eigen::Map<VectorXd>(u.data(), u.size()) = K * alpha;
    return u;
  }

  /// Value; r = residual there.
  double objective(const VectorXd& alpha, VectorXd& r) const {
    Matrix<double> u = predictors(alpha);
    const double loss = likelihood.residual(0, u.rows(), u.data());
    r = Eigen::Map<VectorXd>(u.data(), u.size());
    return loss + 0.5 * alpha.dot(K * alpha);
  }

  MatrixXd hessian(const VectorXd& alpha) const {
    Matrix<double> curvature = predictors(alpha);
    likelihood.curvature(0, curvature.rows(), curvature.data());
    const Index C = likelihood.outputs();
    MatrixXd out = MatrixXd::Zero(K.rows(), K.rows());
    for (Index i = 0; i < curvature.rows(); ++i) {
      Matrix<double> own(C, C);
      likelihood.add_hessian(i, 1, curvature.row(i), own.data());
      out.block(i * C, i * C, C, C) = dense(own.view());
    }
    return out;
  }

  VectorXd minimizer() const {
    VectorXd alpha = VectorXd::Zero(K.rows()), r, other;
    for (int k = 0; k < 60; ++k) {
      const double value = objective(alpha, r);
      const VectorXd g = alpha + r;
      if (g.norm() < 1e-13) break;
      const VectorXd s = -solution(MatrixXd::Identity(K.rows(), K.rows()) + times(hessian(alpha), K), g);
      double step = 1.0;
      const double most = value + 1e-13 * std::abs(value);  // close to the minimum, rounding decides which is larger
      while (step > 1e-10 && objective(alpha + step * s, other) > most) step *= 0.5;
      alpha += step * s;
    }
    return alpha;
  }
};

/// A likelihood of every kind but softmax, which has tests of its own.
struct Losses {
  std::vector<std::int32_t> labels = Random(2).labels(rows, classes), background = Random(3).labels(rows, classes + 1);
  std::vector<double> weights = Random(4).weights(rows);
  std::vector<Index> offsets{0};
  std::vector<std::int32_t> sets;
  std::vector<std::unique_ptr<Likelihood>> all;

  Losses() {
    Random random(5);
    for (std::int32_t& label : background) --label;
    for (Index i = 0; i < rows; ++i) {
      for (std::int32_t c = 0; c < classes; ++c) {
        if (random.below(3) == 0) sets.push_back(c);
      }
      offsets.push_back(static_cast<Index>(sets.size()));
    }
    all.push_back(
        std::make_unique<IndependentLogistic>(LabelSets{offsets.data(), sets.data(), rows}, classes, weights.data()));
    all.push_back(std::make_unique<IndependentLogistic>(labels.data(), rows, classes, nullptr));
    all.push_back(std::make_unique<BackgroundSoftmax>(background, classes, weights));
  }
};

/// A flat or hierarchical model with a linear or an RBF kernel.
struct Model {
  MatrixXd X = Random(1).matrix(rows, 3);
  Matrix<double> inputs = as_matrix(X);
  std::shared_ptr<const Kernel> kernel;
  std::unique_ptr<KernelMatrices> matrices;
  std::unique_ptr<Coupling> coupling;
  Problem problem;

  Model(const Likelihood& likelihood, bool tree, bool rbf) {
    if (rbf) kernel = make_stationary_kernel(StationaryForm::rbf, {length_scale}, 1.0);
    if (rbf) matrices = std::make_unique<KernelMatrices>(std::vector{kernel}, view(), KernelSettings{});
    if (tree) {
      const auto taxonomy = std::make_shared<const Taxonomy>(std::vector<Index>{-1, 0, 0, 1, 1, 2, 2});
      coupling = std::make_unique<TreeCoupling>(taxonomy, TiedVariances{{0.0, 0.5, 2.0, 1.0, 0.25, 3.0, 1.5}, {}});
    } else {
      coupling = std::make_unique<IndependentCoupling>(TiedVariances{{0.5, 2.0, 1.0, 3.0}, {}});
    }
    problem.X = view();
    problem.likelihood = &likelihood;
    problem.prior.variance = rbf ? 1.0 : variance;
    problem.prior.intercept_variance = sigma2;
    problem.prior.coupling = coupling.get();
    problem.prior.kernels = matrices.get();
  }

  DenseView<const double> view() const { return inputs.view(); }

  MatrixXd covariance() const {
    MatrixXd M = variance * times(X, X.transpose());
    if (kernel != nullptr) {
      for (Index i = 0; i < rows; ++i) {
        for (Index j = 0; j < rows; ++j)
          M(i, j) = std::exp(-0.5 * (X.row(i) - X.row(j)).squaredNorm() / (length_scale * length_scale));
      }
    }
    Matrix<double> G = as_matrix(MatrixXd::Identity(classes, classes));
    coupling->apply(classes, G.data());
    MatrixXd K(rows * classes, rows * classes);
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < rows; ++j)
        K.block(i * classes, j * classes, classes, classes) =
            M(i, j) * dense(G.view()) + sigma2 * MatrixXd::Identity(classes, classes);
    }
    return K;
  }

  MatrixXd predicted(const FitResult& result, Link link, Output output) const {
    Matrix<double> out(rows, classes);
    if (kernel == nullptr) {
      predict(view(), result.weights.view(), result.intercepts.data(), link, output, out.view(), one);
    } else {
      predict(view(), {{kernel, view(), result.expansions[0].coefficients.view()}}, {}, nullptr,
              result.intercepts.data(), link, output, out.view(), one);
    }
    return dense(out.view());
  }
};

}  // namespace

TEST_CASE("every likelihood is fitted to the minimum of dense algebra, by all methods, with a true certificate") {
  const Losses losses;
  for (const auto& likelihood : losses.all) {
    for (const bool tree : {false, true}) {
      for (const bool rbf : {false, true}) {
        Model model(*likelihood, tree, rbf);
        const Dense oracle{*likelihood, model.covariance()};
        const VectorXd alpha = oracle.minimizer();
        VectorXd r;
        const double minimum = oracle.objective(alpha, r);
        const MatrixXd u = dense(oracle.predictors(alpha).view());
        REQUIRE((alpha + r).norm() < 1e-9);
        for (const Method method : {Method::lbfgs, Method::nonlinear_cg, Method::newton, Method::exact}) {
          for (const Space state : {Space::coefficients, Space::weights}) {
            const bool on_coefficients = method == Method::newton || method == Method::exact || rbf;
            if (state == Space::weights && on_coefficients) continue;
            if (method == Method::exact && tree) continue;
            CAPTURE(tree);
            CAPTURE(rbf);
            CAPTURE(static_cast<int>(method));
            FitSettings settings;
            settings.method = method;
            settings.space = state;
            settings.precision = Precision::double_;
            settings.tolerance = 1e-12;
            if (method == Method::exact && likelihood->hessian_structure() == HessianStructure::general) {
              CHECK(contains(rejection([&] { fit(model.problem, settings, {}, one); }), "method \"exact\" is for"));
              continue;
            }
            const FitResult result = fit(model.problem, settings, {}, one);
            CHECK(result.status == Status::converged);
            CHECK(result.objective == doctest::Approx(minimum).epsilon(1e-10));
            CHECK(relative_error(model.predicted(result, likelihood->link(), Output::predictor), u) < 1e-5);

            settings.tolerance = 1e-2;
            settings.max_iterations = 3;
            const FitResult loose = fit(model.problem, settings, {}, one);
            CHECK(loose.objective >= minimum * (1.0 - 1e-12));
            CHECK(loose.objective - minimum <= loose.gap * (1.0 + 1e-9) + 1e-12 * minimum);
            settings.precision = Precision::single;
            settings.tolerance = 1e-5;
            settings.max_iterations = 1000;
            const FitResult single = fit(model.problem, settings, {}, one);
            CHECK(single.status == Status::converged);
            CHECK(single.objective == doctest::Approx(minimum).epsilon(1e-5));
          }
        }
      }
    }
  }
}

TEST_CASE("the certified gap of logistic losses is the difference between primal and dual objective") {
  const Losses losses;
  const Model model(*losses.all[0], true, true);
  const MatrixXd K = model.covariance();
  for (const int iterations : {1, 4, 8}) {
    FitSettings settings;
    settings.precision = Precision::double_;
    settings.max_iterations = iterations;
    settings.tolerance = 1e-14;
    settings.keep_point = true;
    const FitResult result = fit(model.problem, settings, {}, one);
    const VectorXd alpha = Eigen::Map<const VectorXd>(result.point.data(), rows * classes);
    VectorXd r;
    const double primal = Dense{*losses.all[0], K}.objective(alpha, r);
    Matrix<double> p = Dense{*losses.all[0], K}.predictors(alpha);
    apply_link(Link::logistic, Output::probability, rows, classes, p.data());
    double dual = -0.5 * r.dot(K * r);  // less the conjugate s (p log p + (1 - p) log(1 - p)) of each output's loss
    for (Index k = 0; k < p.size(); ++k) {
      const double q = p.data()[k];
      dual -= losses.weights[static_cast<std::size_t>(k / classes)] * (q * std::log(q) + (1.0 - q) * std::log1p(-q));
    }
    CHECK(result.objective == doctest::Approx(primal).epsilon(1e-10));
    CHECK(result.gap == doctest::Approx(primal - dual).epsilon(1e-6).scale(1e-6));
    CHECK(result.gap > 0.0);
  }
}

TEST_CASE("predictions of logistic losses are one probability per output") {
  const Losses losses;
  const Model model(*losses.all[0], true, false);
  const FitResult result = fit(model.problem, {}, {}, one);
  const MatrixXd u = model.predicted(result, Link::logistic, Output::predictor);
  const MatrixXd p = model.predicted(result, Link::logistic, Output::probability);
  CHECK(relative_error(p, (1.0 + (-u.array()).exp()).inverse()) < 1e-14);
  CHECK(relative_error(model.predicted(result, Link::logistic, Output::log_probability), p.array().log()) < 1e-13);
  CHECK(contains(rejection([&] { model.predicted(result, Link::none, Output::probability); }), "no probabilities"));
  const Model other(*losses.all[0], true, true);
  const FitResult expansion = fit(other.problem, {}, {}, one);
  CHECK(contains(rejection([&] { other.predicted(expansion, Link::none, Output::probability); }), "no probabilities"));
}

TEST_CASE("one logistic output with twice the variances is softmax over two classes") {
  const MatrixXd X = Random(6).matrix(rows, 3);
  const Matrix<double> inputs = as_matrix(X);
  const std::vector<std::int32_t> labels = Random(7).labels(rows, 2);
  const std::vector<double> weights = Random(8).weights(rows);
  Matrix<double> targets(rows, 1);
  for (Index i = 0; i < rows; ++i) targets.row(i)[0] = labels[static_cast<std::size_t>(i)];
  const Softmax softmax(labels.data(), rows, 2, weights.data());
  const IndependentLogistic logistic(targets.view(), weights.data());
  FitSettings settings;
  settings.tolerance = 1e-13;
  Problem problem;
  problem.X = DenseView<const double>(inputs.data(), rows, 3);
  problem.likelihood = &softmax;
  problem.prior.variance = 1.5;
  problem.prior.intercept_variance = 0.5;
  const FitResult pair = fit(problem, settings, {}, one);
  problem.likelihood = &logistic;
  problem.prior.variance *= 2.0;
  problem.prior.intercept_variance *= 2.0;
  const FitResult single = fit(problem, settings, {}, one);
  CHECK(single.objective == doctest::Approx(pair.objective).epsilon(1e-11));
  const MatrixXd W = dense(pair.weights.view());
  CHECK(relative_error(W.col(1) - W.col(0), dense(single.weights.view())) < 1e-5);
  CHECK(pair.intercepts[1] - pair.intercepts[0] == doctest::Approx(single.intercepts[0]).epsilon(1e-5));
}
