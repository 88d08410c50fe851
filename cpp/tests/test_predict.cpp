#include <doctest/doctest.h>

#include "problems.hpp"
#include "taxolearn/fit/fit.hpp"
#include "taxolearn/fit/predict.hpp"
#include "taxolearn/fit/problem.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

TEST_CASE("predict gives predictors, their softmax and its logarithm") {
  for (const Index classes : {1, 5, 40}) {
    const Inputs inputs(150, 16, 4, 1);
    const MatrixXd W = Random(2).matrix(16, classes);
    const VectorXd b = Random(3).matrix(classes, 1);
    const Padded<double> weights(W);
    const MatrixXd u = (inputs.X * W).rowwise() + b.transpose();
    for (const InputView& X : inputs.views) {
      const auto run = [&](Output output, int threads) {
        Matrix<double> out(150, classes);
        predict(X, weights.view(), b.data(), Link::softmax, output, out.view(), Execution{threads, nullptr});
        return dense(out.view());
      };
      CHECK(relative_error(run(Output::predictor, 1), u) < 1e-14);
      CHECK(relative_error(run(Output::probability, 1), softmax(u)) < 1e-14);
      CHECK((run(Output::log_probability, 1) - log_softmax(u)).norm() < 1e-12);
      for (const Output output : {Output::predictor, Output::probability, Output::log_probability}) {
        CHECK(identical(run(output, 1), run(output, 2)));
      }
    }
  }
}

TEST_CASE("predict checks its arguments") {
  const Inputs inputs(8, 6, 2, 4);
  const std::vector<double> b(3, 0.0);
  Matrix<double> weights(5, 3), fitting(6, 3), out(8, 3), few(7, 3);
  Padded<double> apart(8, 3);
  for (const InputView& X : inputs.views) {
    const auto message = [&](const Matrix<double>& W, DenseView<double> to) {
      return rejection([&] { predict(X, W.view(), b.data(), Link::softmax, Output::predictor, to, one); });
    };
    CHECK(message(fitting, out.view()).empty());
    CHECK(message(weights, out.view()) == "X has 6 features, expected 5");
    CHECK(message(fitting, few.view()) == "out has shape (7, 3), expected (8, 3)");
    CHECK(message(fitting, apart.view()) == "out must be contiguous");
  }
}
