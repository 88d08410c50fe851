#include <doctest/doctest.h>

#include "taxolearn/fit/preconditioner.hpp"
#include "taxolearn/fit/spaces.hpp"
#include "taxolearn/likelihood/softmax.hpp"
#include "taxolearn/solver/lbfgs.hpp"
#include "taxolearn/solver/nonlinear_cg.hpp"
#include "trees.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

/// Dense inputs whose columns have scales from 1 to `spread`, labels that depend on them, and a tree or none.
struct Example {
  MatrixXd X;
  Padded<double> padded;
  std::shared_ptr<const Taxonomy> taxonomy;
  TiedVariances tied;
  TreeCoupling coupling;
  std::vector<std::int32_t> labels;
  Softmax likelihood;
  Problem problem;
  MatrixXd R;

  Example(Index rows, Index cols, Index nodes, double spread, bool tree, double shift = 0.0)
      : X(scaled(rows, cols, spread, shift)),
        padded(X),
        taxonomy(std::make_shared<const Taxonomy>(random_parents(nodes, 6, 5))),
        tied(random_variances(nodes, 6)),
        coupling(taxonomy, tied),
        labels(labels_of(X, taxonomy->classes())),
        likelihood(labels.data(), rows, taxonomy->classes(), nullptr),
        R(tree ? dense_root(*taxonomy, tied) : MatrixXd::Identity(taxonomy->classes(), taxonomy->classes())) {
    problem.X = static_cast<const Padded<double>&>(padded).view();
    problem.likelihood = &likelihood;
    problem.prior.variance = 1.5;
    problem.prior.intercept_variance = 0.3;
    problem.prior.coupling = tree ? &coupling : nullptr;
  }

  static MatrixXd scaled(Index rows, Index cols, double spread, double shift) {
    MatrixXd X = Random(1).matrix(rows, cols).array() + shift;
    for (Index j = 0; j < cols; ++j)
      X.col(j) *= std::pow(spread, static_cast<double>(j) / static_cast<double>(cols - 1));
    return X;
  }

  static std::vector<std::int32_t> labels_of(const MatrixXd& X, Index classes) {
    const MatrixXd u = X * Random(2).matrix(X.cols(), classes);
    std::vector<std::int32_t> out;
    for (Index i = 0; i < X.rows(); ++i) {
      Index best = 0;
      u.row(i).maxCoeff(&best);
      out.push_back(static_cast<std::int32_t>(best));
    }
    return out;
  }
};

}  // namespace

TEST_CASE("the Kronecker preconditioner is a Kronecker product of the means over rows, and is solved exactly") {
  const Index d = Taxonomy(random_parents(14, 6, 5)).classes();  // as many features as classes: all rows are taken
  for (const Index rows : {30, 900}) {                           // in one part and in several
    for (const bool tree : {false, true}) {
      const Example example(rows, d, 14, 4.0, tree, 0.7);
      const Index classes = example.likelihood.outputs();
      const MatrixXd u = Random(4).matrix(rows, classes);
      KroneckerPreconditioner preconditioner(example.problem, two);
      preconditioner.renew(as_matrix(u));

      const MatrixXd pi = softmax(u);
      const MatrixXd H = MatrixXd(pi.colwise().sum().asDiagonal()) - pi.transpose() * pi;
      const MatrixXd A = 1.5 / static_cast<double>(rows) * example.X.transpose() * example.X;
      const MatrixXd B = example.R.transpose() * H * example.R;
      const Index factors = B.rows();
      const Index size = d * factors + classes;
      MatrixXd whole = MatrixXd::Identity(size, size);
      for (Index j = 0; j < d; ++j)
        for (Index k = 0; k < d; ++k) whole.block(j * factors, k * factors, factors, factors) += A(j, k) * B;
      for (Index j = 0; j < d; ++j) {
        const MatrixXd cross = std::sqrt(1.5 * 0.3) * example.X.col(j).mean() * H * example.R;
        whole.block(d * factors, j * factors, classes, factors) += cross;
        whole.block(j * factors, d * factors, factors, classes) += cross.transpose();
      }
      whole.bottomRightCorner(classes, classes) += 0.3 * H;

      const VectorXd right = Random(5).matrix(size, 1);
      VectorXd point = right;
      preconditioner.apply(point.data());
      CHECK(relative_error(point, solution(whole, right)) < 1e-12);

      KroneckerPreconditioner serial(example.problem, Execution{});
      serial.renew(as_matrix(u));
      VectorXd same = right;
      serial.apply(same.data());
      CHECK(identical(same, point));
    }
  }
}

TEST_CASE("it is the identity before the first renewal") {
  const Example example(30, 6, 14, 4.0, true);
  KroneckerPreconditioner preconditioner(example.problem, Execution{});
  const Index size = 6 * static_cast<Index>(example.R.cols()) + example.likelihood.outputs();
  const VectorXd right = Random(5).matrix(size, 1);
  VectorXd point = right;
  preconditioner.apply(point.data());
  CHECK(relative_error(point, right) < 1e-13);
}

TEST_CASE("where the correction overflows, intercepts stay as they are and weights are solved without their means") {
  const Index d = Taxonomy(random_parents(14, 6, 5)).classes();
  for (const bool tree : {false, true}) {
    Example example(900, d, 14, 4.0, tree, 0.7);
    example.problem.prior.intercept_variance = 1e308;  // times the Hessian: Cholesky's factors do not exist
    const Index classes = example.likelihood.outputs();
    const MatrixXd u = Random(4).matrix(900, classes);
    KroneckerPreconditioner preconditioner(example.problem, two);
    preconditioner.renew(as_matrix(u));

    const MatrixXd pi = softmax(u);
    const MatrixXd H = MatrixXd(pi.colwise().sum().asDiagonal()) - pi.transpose() * pi;
    const MatrixXd centred = example.X.rowwise() - example.X.colwise().mean();
    const MatrixXd A = 1.5 / 900.0 * centred.transpose() * centred;
    const MatrixXd B = example.R.transpose() * H * example.R;
    const Index factors = B.rows();
    MatrixXd P = MatrixXd::Identity(d * factors, d * factors);
    for (Index j = 0; j < d; ++j)
      for (Index k = 0; k < d; ++k) P.block(j * factors, k * factors, factors, factors) += A(j, k) * B;

    const VectorXd right = Random(5).matrix(d * factors + classes, 1);
    VectorXd point = right;
    preconditioner.apply(point.data());
    CHECK(relative_error(point.head(P.rows()), solution(P, right.head(P.rows()))) < 1e-12);
    CHECK(identical(point.tail(classes), right.tail(classes)));
  }
}

TEST_CASE("it is worthwhile where features and classes are few, and not where they are many") {
  CHECK(KroneckerPreconditioner::is_worthwhile(Example(2000, 8, 14, 4.0, true).problem));
  CHECK(!KroneckerPreconditioner::is_worthwhile(Example(20, 60, 14, 4.0, true).problem));
  CHECK(!KroneckerPreconditioner::is_worthwhile(Example(2000, 8, 400, 4.0, false).problem));
  Example empty(20, 2, 14, 4.0, true);
  empty.problem.X = DenseView<const double>(nullptr, 20, 0);
  CHECK(!KroneckerPreconditioner::is_worthwhile(empty.problem));
}

TEST_CASE_TEMPLATE("with it, fits of badly scaled inputs take fewer iterations to the same minimum", T, float, double) {
  for (const bool tree : {false, true}) {
    const Example example(2000, 8, 14, 30.0, tree);
    MinimizeSettings settings;
    settings.history = 5;
    settings.tolerance = 1e-6;
    const auto run = [&](auto& space) { return lbfgs(space, settings, [](const MinimizeResult&) {}); };
    FitResult of_weights, of_coefficients;
    WeightSpace<T> weights(example.problem, lbfgs_slots(5), two, of_weights);
    REQUIRE(weights.has_preconditioner());
    CoefficientSpace<T> coefficients(example.problem, lbfgs_slots(5), two, of_coefficients);
    const MinimizeResult with = run(weights);
    const MinimizeResult without = run(coefficients);
    CHECK(with.status == Status::converged);
    CHECK(without.status == Status::converged);
    CHECK(with.objective == doctest::Approx(without.objective).epsilon(2e-6));
    CHECK(3 * with.iterations < 2 * without.iterations);
  }
}
