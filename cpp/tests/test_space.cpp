#include <doctest/doctest.h>

#include "softmax_example.hpp"
#include "taxolearn/fit/spaces.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

constexpr Index classes = 4;
constexpr int slots = 3;
constexpr double variance = 0.5;

/// A problem, its dense self, and a point in both states.
struct Example : SoftmaxExample {
  DenseProblem oracle;
  MatrixXd alpha, W;

  Example(Index rows, Index cols, double intercept_variance, int view)
      : SoftmaxExample(rows, cols, classes, variance, intercept_variance, view),
        oracle(in_dense_algebra()),
        alpha(Random(4).matrix(rows, classes)),
        W(times(oracle.Z.transpose(), alpha)) {}
};

// The two spaces by one name: the example's point, and the present point as weights, whatever the state.

template <class T>
void start(CoefficientSpace<T>& space, const Example& example) {
  space.start(as_matrix(example.alpha));
}
template <class T>
void start(WeightSpace<T>& space, const Example& example) {
  const Matrix<double> W = as_matrix(example.W);
  space.start(Buffer<double>(W.data(), W.data() + W.size()));
}

template <class T>
MatrixXd point_of(CoefficientSpace<T>& space, const Example& example) {
  return times(example.oracle.Z.transpose(), dense(space.coefficients().view()));
}
template <class T>
MatrixXd point_of(WeightSpace<T>& space, const Example& example) {
  return dense(DenseView<const double>(space.weights().data(), example.W.rows(), example.W.cols()));
}

template <class T>
constexpr double error_of(const PredictorSpace<T>*) {
  return sizeof(T) == sizeof(float) ? 3e-5 : 1e-11;
}

double dot(const MatrixXd& a, const MatrixXd& b) { return (a.array() * b.array()).sum(); }

}  // namespace

TEST_CASE_TEMPLATE("a space does what dense weights do", Space, CoefficientSpace<float>, CoefficientSpace<double>,
                   WeightSpace<float>, WeightSpace<double>) {
  const double error = error_of(static_cast<const Space*>(nullptr));
  for (const int view : {0, 1, 2, 3, 4, 5}) {
    for (const double intercept_variance : {0.0, 2.0}) {
      CAPTURE(view);
      CAPTURE(intercept_variance);
      const Example example(37, 20, intercept_variance, view);
      const DenseProblem& oracle = example.oracle;
      FitResult result;
      Space space(example.problem, slots, one, result);
      CHECK(relative_error(dense(space.predictors().view()), MatrixXd::Zero(37, classes)) == 0.0);
      CHECK(space.advance(0.0, 0) == doctest::Approx(oracle.objective(MatrixXd::Zero(21, classes))).epsilon(error));
      const MatrixXd g0 = oracle.gradient(MatrixXd::Zero(21, classes));

      start(space, example);
      CHECK(relative_error(dense(space.predictors().view()), oracle.Z * example.W) < error);
      CHECK(space.advance(0.0, 1) == doctest::Approx(oracle.objective(example.W)).epsilon(error));
      const MatrixXd g1 = oracle.gradient(example.W);
      const std::vector<double> products = space.inner(1, {0, 1});
      REQUIRE(products.size() == 2);
      CHECK(products[0] == doctest::Approx(dot(g1, g0)).epsilon(error));
      CHECK(products[1] == doctest::Approx(dot(g1, g1)).epsilon(error));

      space.combine({0.5, -1.0, 0.0}, 0);  // a combination may replace one of its parts
      MatrixXd direction = 0.5 * g0 - g1;
      CHECK(space.inner(0, {0})[0] == doctest::Approx(direction.squaredNorm()).epsilon(error));
      for (const double step : {0.0, 0.3, -1.0}) {
        const LineValue point = space.line(step);
        const MatrixXd moved = example.W + step * direction;
        const double h = 1e-4;
        const auto slope = [&](double t) { return dot(oracle.gradient(example.W + t * direction), direction); };
        CHECK(point.value == doctest::Approx(oracle.objective(moved)).epsilon(error));
        CHECK(std::abs(point.slope - slope(step)) < error * direction.squaredNorm());
        CHECK(point.curvature == doctest::Approx((slope(step + h) - slope(step - h)) / (2.0 * h)).epsilon(1e-5));
      }
      const MatrixXd W = example.W + 0.3 * direction;
      CHECK(space.advance(0.3, 2) == doctest::Approx(oracle.objective(W)).epsilon(error));
      CHECK(relative_error(point_of(space, example), W) < error);
      CHECK(relative_error(dense(space.predictors().view()), times(oracle.Z, W)) < error);
      CHECK(space.inner(2, {2})[0] == doctest::Approx(oracle.gradient(W).squaredNorm()).epsilon(error));
    }
  }
}

TEST_CASE_TEMPLATE("a point is scaled to where the objective is least", Space, CoefficientSpace<float>,
                   CoefficientSpace<double>, WeightSpace<float>, WeightSpace<double>) {
  const double error = error_of(static_cast<const Space*>(nullptr));
  for (const int view : {2, 5}) {
    const Example example(37, 20, 2.0, view);
    const DenseProblem& oracle = example.oracle;
    FitResult result;
    Space space(example.problem, slots, one, result);
    start(space, example);
    const int products = result.products;
    space.rescale();
    CHECK(result.products == products);
    const MatrixXd W = point_of(space, example);
    const double factor = dot(W, example.W) / example.W.squaredNorm();
    CHECK(relative_error(W, factor * example.W) < error);
    CHECK(relative_error(dense(space.predictors().view()), times(oracle.Z, W)) < error);
    CHECK(std::abs(factor - 1.0) > 0.1);  // else this would show nothing
    CHECK(std::abs(dot(oracle.gradient(W), W)) < 0.02 * std::abs(dot(oracle.gradient(example.W), example.W)));
    CHECK(space.advance(0.0, 1) == doctest::Approx(oracle.objective(W)).epsilon(error));

    space.start_at_zero();
    space.rescale();
    CHECK(point_of(space, example).norm() == 0.0);
    CHECK(space.advance(0.0, 1) == doctest::Approx(oracle.objective(MatrixXd::Zero(21, classes))).epsilon(error));
  }
}

TEST_CASE_TEMPLATE("a space gives the same bits on two threads", Space, CoefficientSpace<float>,
                   CoefficientSpace<double>, WeightSpace<float>, WeightSpace<double>) {
  for (const int view : {2, 5}) {
    const Example example(1500, 700, 2.0, view);
    const auto run = [&](const Execution& execution) {
      FitResult result;
      Space space(example.problem, slots, execution, result);
      std::vector<double> numbers{space.advance(0.0, 0)};
      start(space, example);
      numbers.push_back(space.advance(0.0, 1));
      for (const double product : space.inner(1, {0, 1})) numbers.push_back(product);
      space.combine({0.5, -1.0, 0.0}, 2);
      const LineValue point = space.line(0.01);
      numbers.insert(numbers.end(), {point.value, point.slope, point.curvature});
      numbers.push_back(space.advance(0.01, 0));
      numbers.push_back(dense(space.predictors().view()).sum());
      return numbers;
    };
    const std::vector<double> numbers = run(one);
    CHECK(numbers[1] == doctest::Approx(example.oracle.objective(example.W)).epsilon(1e-4));
    CHECK(numbers == run(two));
  }
}

TEST_CASE_TEMPLATE("coefficients: kernel, its diagonal, and a direction from outside", T, float, double) {
  const Example example(37, 20, 2.0, 2);
  const MatrixXd K = example.oracle.kernel();
  FitResult result;
  CoefficientSpace<T> space(example.problem, slots, one, result);
  CHECK(result.products == 0);
  CHECK(result.algorithm == "sparse");

  Matrix<double> out(37, classes);
  space.kernel(as_matrix(example.alpha).data(), out.data());
  CHECK(relative_error(dense(out.view()), K * example.alpha) < rounding<T>);
  CHECK(result.products == 1);
  const Matrix<double> diagonal = space.kernel_diagonal();
  CHECK(relative_error(dense(diagonal.view()), K.diagonal().replicate(1, classes)) < 1e-14);

  space.start(as_matrix(example.alpha));
  space.advance(0.0, 0);
  CHECK(result.products == 3);
  const MatrixXd s = Random(5).matrix(37, classes);
  const Matrix<double> direction = as_matrix(s), image = as_matrix(K * s);
  std::copy(direction.data(), direction.data() + direction.size(), space.slot(1).begin());
  std::copy(image.data(), image.data() + image.size(), space.slot_image(1).begin());
  space.use_direction(1);
  const MatrixXd W = times(example.oracle.Z.transpose(), example.alpha + 0.2 * s);
  CHECK(space.line(0.2).value == doctest::Approx(example.oracle.objective(W)).epsilon(10 * rounding<T>));
  CHECK(result.products == 3);  // the line is free
  space.advance(0.2, 0);
  CHECK(relative_error(dense(space.coefficients().view()), example.alpha + 0.2 * s) < rounding<T>);
  CHECK(result.products == 4);
}

TEST_CASE("weights: one product is a projection and an expansion") {
  const Example example(37, 20, 2.0, 2);
  FitResult result;
  WeightSpace<double> space(example.problem, slots, one, result);
  CHECK(result.algorithm == "sparse");
  space.advance(0.0, 0);
  space.combine({-1.0, 0.0, 0.0}, 1);
  space.advance(0.1, 2);
  CHECK(result.products == 2);
}
