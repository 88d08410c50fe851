// A softmax problem with random inputs, labels and weights, as the library takes it and in dense algebra.
#pragma once

#include "problems.hpp"
#include "taxolearn/fit/problem.hpp"
#include "taxolearn/fit/settings.hpp"
#include "taxolearn/likelihood/softmax.hpp"

namespace taxolearn::tests {

struct SoftmaxExample {
  Inputs inputs;
  std::vector<std::int32_t> labels;
  std::vector<double> weights;
  Softmax likelihood;
  Problem problem;

  SoftmaxExample(Index rows, Index cols, Index classes, double variance, double intercept_variance, int view)
      : inputs(rows, cols, 4, 1),
        labels(Random(2).labels(rows, classes)),
        weights(Random(3).weights(rows)),
        likelihood(labels.data(), rows, classes, weights.data()) {
    problem.X = inputs.views[static_cast<std::size_t>(view)];
    problem.likelihood = &likelihood;
    problem.prior.variance = variance;
    problem.prior.intercept_variance = intercept_variance;
  }

  DenseProblem in_dense_algebra() const {
    return DenseProblem(inputs.X, one_hot(labels, likelihood.outputs()),
                        Eigen::Map<const VectorXd>(weights.data(), likelihood.rows()), problem.prior.variance,
                        problem.prior.intercept_variance);
  }
};

/// A solver and the vectors it works on.
struct Choice {
  Method method;
  Space space;
};

inline const std::vector<Choice> choices{
    {Method::lbfgs, Space::coefficients},        {Method::lbfgs, Space::weights},
    {Method::nonlinear_cg, Space::coefficients}, {Method::nonlinear_cg, Space::weights},
    {Method::newton, Space::coefficients},       {Method::newton, Space::automatic}};

inline FitSettings settings_of(const Choice& choice, Precision precision, double tolerance) {
  FitSettings settings;
  settings.method = choice.method;
  settings.space = choice.space;
  settings.precision = precision;
  settings.tolerance = tolerance;
  return settings;
}

}  // namespace taxolearn::tests
