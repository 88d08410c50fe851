#include <doctest/doctest.h>

#include <array>

#include "problems.hpp"
#include "taxolearn/fit/fit.hpp"
#include "taxolearn/fit/predict.hpp"
#include "taxolearn/fit/problem.hpp"
#include "taxolearn/fit/spaces.hpp"
#include "taxolearn/kernels/functions.hpp"
#include "taxolearn/likelihood/softmax.hpp"
#include "trees.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

constexpr Index rows = 40;
constexpr Index new_rows = 15;
constexpr Index classes = 5;

/// exp(-|x - y|^2 / (2 l^2)), entry by entry.
MatrixXd rbf(const MatrixXd& X, const MatrixXd& Y, double length_scale) {
  return MatrixXd::NullaryExpr(X.rows(), Y.rows(), [&](Index i, Index j) {
    return std::exp(-0.5 * (X.row(i) - Y.row(j)).squaredNorm() / (length_scale * length_scale));
  });
}

/// u (n x C) and alpha as vectors, classes one after the other; K the whole covariance (nC x nC).
struct Dense {
  MatrixXd K, Y;
  VectorXd s;

  double objective(const VectorXd& alpha) const {
    const MatrixXd u = (K * alpha).reshaped(Y.rows(), Y.cols());
    return s.dot(log_sum_exp(u) - VectorXd((Y.array() * u.array()).rowwise().sum())) + 0.5 * alpha.dot(K * alpha);
  }

  /// Newton's method in alpha by full matrices.
  VectorXd minimizer() const {
    const Index n = Y.rows();
    const Index C = Y.cols();
    VectorXd alpha = VectorXd::Zero(n * C);
    for (int k = 0; k < 60; ++k) {
      const MatrixXd pi = softmax((K * alpha).reshaped(n, C));
      MatrixXd W = MatrixXd::Zero(n * C, n * C);
      for (Index a = 0; a < C; ++a) {
        for (Index b = 0; b < C; ++b)
          W.block(a * n, b * n, n, n).diagonal() =
              s.array() * pi.col(a).array() * ((a == b ? 1.0 : 0.0) - pi.col(b).array());
      }
      const MatrixXd residual = s.asDiagonal() * (pi - Y);
      const VectorXd g = alpha + VectorXd(residual.reshaped());
      const VectorXd step = solution(MatrixXd::Identity(n * C, n * C) + times(W, K), g);
      double length = 1.0;
      while (length > 1e-8 && objective(alpha - length * step) > objective(alpha)) length *= 0.5;
      alpha -= length * step;
      if (g.norm() < 1e-13) break;
    }
    return alpha;
  }
};

enum class Kind { shared, own, shared_variances, shared_tree, own_tree };
const std::vector<Kind> kinds{Kind::shared, Kind::own, Kind::shared_variances, Kind::shared_tree, Kind::own_tree};

/// A model with one or three RBF kernels, flat or with a tree, and the same in dense algebra.
struct Example {
  MatrixXd X = Random(1).matrix(rows, 3), X_new = Random(2).matrix(new_rows, 3);
  Padded<double> inputs{X}, new_inputs{X_new};
  std::vector<std::int32_t> labels = Random(3).labels(rows, classes);
  std::vector<double> weights = Random(4).weights(rows);
  Softmax likelihood{labels.data(), rows, classes, weights.data()};
  std::vector<double> scales;
  std::vector<std::shared_ptr<const Kernel>> kernels;
  std::unique_ptr<Coupling> coupling;
  MatrixXd R = MatrixXd::Identity(classes, classes);
  double intercept_variance;
  Problem problem;
  std::unique_ptr<KernelMatrices> matrices;

  Example(Kind kind, double intercept_variance_, KernelSettings settings = {})
      : intercept_variance(intercept_variance_) {
    const bool own = kind == Kind::own || kind == Kind::own_tree;
    scales = own ? std::vector<double>{0.5, 1.0, 2.0} : std::vector<double>{0.8};
    for (const double scale : scales)
      kernels.push_back(make_stationary_kernel(StationaryForm::rbf, {scale}, own ? 1.0 : 3.0));
    if (kind == Kind::shared_variances || kind == Kind::own) {
      TiedVariances variances;
      for (Index c = 0; c < classes; ++c) variances.variances.push_back(1.0 + static_cast<double>(c));
      coupling = std::make_unique<IndependentCoupling>(variances);
    }
    if (kind == Kind::shared_tree || kind == Kind::own_tree) {
      // root 0; inner 1, 2; leaves 3 .. 7
      const auto taxonomy = std::make_shared<const Taxonomy>(std::vector<Index>{-1, 0, 0, 1, 1, 1, 2, 2});
      TiedVariances variances;
      for (Index p = 0; p < 8; ++p) variances.variances.push_back(0.5 + 0.25 * static_cast<double>(p));
      coupling = std::make_unique<TreeCoupling>(taxonomy, variances);
    }
    if (coupling != nullptr) {
      const Index factors = coupling->factors();
      R = MatrixXd::Zero(classes, factors);
      std::vector<double> unit(static_cast<std::size_t>(factors)), column(static_cast<std::size_t>(classes));
      for (Index f = 0; f < factors; ++f) {
        std::fill(unit.begin(), unit.end(), 0.0);
        unit[static_cast<std::size_t>(f)] = 1.0;
        coupling->from_factors(1, unit.data(), column.data());
        for (Index c = 0; c < classes; ++c) R(c, f) = column[static_cast<std::size_t>(c)];
      }
    }
    matrices = std::make_unique<KernelMatrices>(kernels, static_cast<const Padded<double>&>(inputs).view(), settings);
    problem.X = static_cast<const Padded<double>&>(inputs).view();
    problem.likelihood = &likelihood;
    problem.prior.coupling = coupling.get();
    problem.prior.intercept_variance = intercept_variance;
    problem.prior.kernels = matrices.get();
    for (Index f = 0; own && f < R.cols(); ++f) problem.prior.kernel_of.push_back(f * 2 % 3);
  }

  /// The covariance between the functions at some points and at the training rows, classes one after the other.
  MatrixXd covariance(const MatrixXd& points) const {
    MatrixXd K = MatrixXd::Zero(points.rows() * classes, rows * classes);
    for (Index a = 0; a < classes; ++a) {
      for (Index b = 0; b < classes; ++b) {
        auto block = K.block(a * points.rows(), b * rows, points.rows(), rows);
        for (Index f = 0; f < R.cols(); ++f) {
          const std::size_t l =
              problem.prior.kernel_of.empty() ? 0 : static_cast<std::size_t>(problem.prior.kernel_of[f]);
          block += R(a, f) * R(b, f) * (problem.prior.kernel_of.empty() ? 3.0 : 1.0) * rbf(points, X, scales[l]);
        }
        if (a == b) block.array() += intercept_variance;
      }
    }
    return K;
  }

  Dense dense_problem() const {
    return {covariance(X), one_hot(labels, classes), Eigen::Map<const VectorXd>(weights.data(), rows)};
  }

  MatrixXd predict_new(const FitResult& result, Output output, const Execution& execution) const {
    std::vector<Matrix<double>> bases;
    std::vector<Term> terms;
    bases.reserve(kernels.size());
    for (std::size_t l = 0; l < kernels.size(); ++l) {
      const Expansion& expansion = result.expansions[l];
      MatrixXd basis = X;
      if (!expansion.basis.empty()) {
        basis.resize(static_cast<Index>(expansion.basis.size()), 3);
        for (Index k = 0; k < basis.rows(); ++k) basis.row(k) = X.row(expansion.basis[static_cast<std::size_t>(k)]);
      }
      bases.push_back(as_matrix(basis));
      const Matrix<double>& held = bases.back();
      terms.push_back({kernels[l], held.view(), expansion.coefficients.view()});
    }
    Matrix<double> out(new_rows, classes);
    predict(static_cast<const Padded<double>&>(new_inputs).view(), terms, problem.prior.kernel_of,
            problem.prior.kernel_of.empty() ? nullptr : coupling.get(), result.intercepts.data(), likelihood.link(),
            output, out.view(), execution);
    return dense(out.view());
  }
};

}  // namespace

TEST_CASE("all methods and algorithms come to the minimum of dense algebra, with a true certificate") {
  const std::array<Method, 4> methods{Method::lbfgs, Method::nonlinear_cg, Method::newton, Method::exact};
  const std::array<KernelAlgorithm, 3> algorithms{KernelAlgorithm::gram, KernelAlgorithm::tiled,
                                                  KernelAlgorithm::low_rank};
  for (const Kind kind : kinds) {
    for (const double intercept_variance : {0.0, 2.0}) {
      const Dense oracle = Example(kind, intercept_variance).dense_problem();
      const VectorXd best = oracle.minimizer();
      const double minimum = oracle.objective(best);
      for (const Method method : methods) {
        if (method == Method::exact && (kind == Kind::shared_tree || kind == Kind::own_tree)) continue;
        for (const KernelAlgorithm algorithm : algorithms) {
          KernelSettings kernel_settings;
          kernel_settings.algorithm = algorithm;
          kernel_settings.tolerance = 0.0;  // full rank
          const Example example(kind, intercept_variance, kernel_settings);
          FitSettings settings;
          settings.method = method;
          settings.tolerance = 1e-10;
          const FitResult result = fit(example.problem, settings, {}, two);
          CAPTURE(static_cast<int>(kind));
          CAPTURE(static_cast<int>(method));
          CAPTURE(static_cast<int>(algorithm));
          CHECK(result.status == Status::converged);
          CHECK(result.algorithm == algorithm_name(algorithm));
          CHECK(result.objective == doctest::Approx(minimum).epsilon(1e-9));
          CHECK(result.objective - minimum <= result.gap + 1e-9 * minimum);
          const MatrixXd expected = (example.covariance(example.X_new) * best).reshaped(new_rows, classes);
          CHECK(relative_error(example.predict_new(result, Output::predictor, two), expected) < 1e-4);
          CHECK(relative_error(example.predict_new(result, Output::probability, one), softmax(expected)) < 1e-5);
        }
      }
    }
  }
}

TEST_CASE("single precision comes to the same answer and is certified in double") {
  for (const Kind kind : kinds) {
    const Dense oracle = Example(kind, 1.0).dense_problem();
    const double minimum = oracle.objective(oracle.minimizer());
    const Example example(kind, 1.0);
    FitSettings settings;
    settings.precision = Precision::single;
    settings.tolerance = 1e-6;
    const FitResult result = fit(example.problem, settings, {}, two);
    CHECK(result.precision == Precision::single);
    CHECK(result.status == Status::converged);
    CHECK(result.objective - minimum <= result.gap + 1e-9 * minimum);
    CHECK(result.objective >= minimum * (1.0 - 1e-9));
  }
}

TEST_CASE("a low rank certifies its own problem, near the true one") {
  const Example full(Kind::shared, 1.0);
  FitSettings settings;
  settings.tolerance = 1e-9;
  const MatrixXd truth = full.predict_new(fit(full.problem, settings, {}, one), Output::probability, one);
  double before = 1.0;
  for (const Index rank : {3, 12, 30}) {
    KernelSettings kernel_settings;
    kernel_settings.algorithm = KernelAlgorithm::low_rank;
    kernel_settings.rank = rank;
    kernel_settings.tolerance = 0.0;
    const Example example(Kind::shared, 1.0, kernel_settings);
    const FitResult result = fit(example.problem, settings, {}, two);
    CHECK(result.status == Status::converged);
    REQUIRE(result.ranks.size() == 1);
    CHECK(result.ranks[0] == rank);
    CHECK(static_cast<Index>(result.expansions[0].basis.size()) == rank);
    const double error = (example.predict_new(result, Output::probability, one) - truth).norm() / truth.norm();
    CHECK(error < before);
    before = error;
  }
  CHECK(before < 0.05);
}

TEST_CASE("the diagonal of the covariance, which preconditions Newton") {
  for (const Kind kind : kinds) {
    const Example example(kind, 0.5);
    FitResult result;
    CoefficientSpace<double> space(example.problem, 2, two, result);
    const MatrixXd expected = MatrixXd(example.covariance(example.X)).diagonal().reshaped(rows, classes);
    const Matrix<double> diagonal = space.kernel_diagonal();
    CHECK(relative_error(dense(diagonal.view()), expected) < 1e-14);
    const MatrixXd S = Random(9).matrix(rows, classes);
    Matrix<double> image(rows, classes);
    space.kernel(as_matrix(S).data(), image.data());
    const MatrixXd product = times(example.covariance(example.X), S.reshaped()).reshaped(rows, classes);
    CHECK(relative_error(dense(image.view()), product) < 1e-13);
  }
}

TEST_CASE("automatic products store what fits, and say why") {
  FitSettings settings;
  settings.precision = Precision::single;
  KernelSettings little;
  little.memory_limit = 1.0;
  const FitResult tiled = fit(Example(Kind::own, 1.0, little).problem, settings, {}, one);
  CHECK(tiled.algorithm == "tiled");
  CHECK(contains(tiled.reason, "more than memory_limit"));
  const FitResult gram = fit(Example(Kind::own, 1.0).problem, settings, {}, one);
  CHECK(gram.algorithm == "gram");
  CHECK(contains(gram.reason, "within memory_limit"));
  CHECK(gram.kernel_bytes > 0.0);
}

TEST_CASE("a fit starts from predictors") {
  const Example example(Kind::own, 1.0);
  FitSettings settings;
  settings.tolerance = 1e-8;
  const FitResult first = fit(example.problem, settings, {}, one);
  const Dense oracle = example.dense_problem();
  const MatrixXd u = (oracle.K * oracle.minimizer()).reshaped(rows, classes);
  const Matrix<double> predictors = as_matrix(u);
  Start start;
  start.predictors = predictors.data();
  const FitResult again = fit(example.problem, settings, start, one);
  CHECK(again.iterations <= 1);
  CHECK(first.iterations > 5);
}

TEST_CASE("an indefinite matrix is not certified") {
  MatrixXd K = MatrixXd::Identity(rows, rows);
  for (Index i = 0; i + 1 < rows; i += 2) K(i, i + 1) = K(i + 1, i) = 3.0;
  const Padded<double> matrix(K);
  Example example(Kind::shared, 0.0);
  KernelMatrices matrices({make_precomputed_kernel(1.0)}, matrix.view(), {});
  example.problem.X = matrix.view();
  example.problem.prior.kernels = &matrices;
  const std::array<Method, 3> methods{Method::lbfgs, Method::nonlinear_cg, Method::newton};
  for (const Method method : methods) {
    FitSettings settings;
    settings.method = method;
    const FitResult result = fit(example.problem, settings, {}, one);
    CHECK(result.status != Status::converged);
    CHECK(std::isfinite(result.objective));
  }
}

TEST_CASE("what does not fit is rejected") {
  Example example(Kind::own, 1.0);
  const auto message = [&](const FitSettings& settings) {
    return rejection([&] { fit(example.problem, settings, {}, one); });
  };
  FitSettings settings;
  settings.space = Space::weights;
  CHECK(contains(message(settings), "space \"weights\" needs the linear kernel"));
  settings.space = Space::automatic;
  example.problem.prior.kernel_of[1] = 7;
  CHECK(contains(message(settings), "a function has kernel 7, expected one of 3"));
  example.problem.prior.kernel_of.pop_back();
  CHECK(contains(message(settings), "expected 5"));
  Example tree(Kind::shared_tree, 1.0);
  settings.method = Method::exact;
  CHECK(contains(rejection([&] { fit(tree.problem, settings, {}, one); }), "flat models"));
}
