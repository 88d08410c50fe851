// What is fitted: a convex loss of predictors with a Gaussian prior on the class functions.
//
//   Phi(alpha) = f(u) + 1/2 alpha . u,   u = K alpha = M alpha G + sigma^2 1 1^T alpha,
//
// with f the likelihood's loss and K the prior covariance (prior.hpp): M the kernel matrix of the inputs, G = R R^T the
// coupling of the classes (the identity for a flat model), sigma^2 the intercept variance. The linear kernel M =
// variance X X^T has a second form, in weights: u = sqrt(variance) X W R^T + sigma 1 b^T and Phi = f(u) + 1/2 |W|^2 +
// 1/2 |b|^2; W has a column per column of R, b an element per class. Inputs in blocks are X = [f_0 X_0, f_1 X_1, ...], so
// that M is the sum over the blocks of f_b^2 X_b X_b^T.
#pragma once

#include "taxolearn/data/input.hpp"
#include "taxolearn/fit/prior.hpp"
#include "taxolearn/fit/settings.hpp"
#include "taxolearn/likelihood/likelihood.hpp"

namespace taxolearn {

struct Problem {
  InputView X;                             ///< n x d
  const Likelihood* likelihood = nullptr;  ///< of n rows and C classes
  Prior prior;                             ///< its kernels are over X
};

/// Columns of R.
inline Index factor_count(const Problem& problem) {
  return problem.prior.coupling == nullptr ? problem.likelihood->outputs() : problem.prior.coupling->factors();
}

/// Where to begin. All null: at zero.
struct Start {
  const double* coefficients = nullptr;  ///< alpha, n x C
  const double* predictors = nullptr;    ///< u at the rows, n x C: coefficients start at minus the residuals
  const double* weights = nullptr;       ///< coef (d x C) followed by the intercepts (C)
  const double* point = nullptr;         ///< FitResult::point of a fit with the same inputs, coupling and space
};

/// Numbers in a point of this space.
inline Index point_size(const Problem& problem, Space space) {
  const Index classes = problem.likelihood->outputs();
  if (space == Space::coefficients) return input_rows(problem.X) * classes;
  return input_features(problem.X) * factor_count(problem) + classes;
}

}  // namespace taxolearn
