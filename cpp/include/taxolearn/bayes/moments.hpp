// Hierarchical Bayesian logistic regression by partial MAP inference (Gopal and Yang 2015, 3.2): what the posterior of the
// weights, in Laplace's approximation, says about their prior variances.
//
// A priori w_n ~ N(w_parent(n), v_g(n) I), or with variances of each feature. At the most probable weights the leaves have
// the curvature h_cj = sum_i p_ic (1 - p_ic) x_ij^2, the diagonal of the Hessian (7). With it, and the tree's prior, each
// feature's weights at all nodes have a Gaussian posterior; a fit's most probable weights are its mean.
#pragma once

#include <vector>

#include "taxolearn/classes/taxonomy.hpp"
#include "taxolearn/data/input.hpp"
#include "taxolearn/likelihood/link.hpp"

namespace taxolearn {

/// The most probable weights of the leaves.
struct FittedWeights {
  DenseView<const double> weights;     ///< d x C
  const double* intercepts = nullptr;  ///< C
  Link link = Link::softmax;
};

struct MomentsProblem {
  InputView X;                          ///< n x d, one matrix; sparse rows are sorted and hold no feature twice
  const double* row_weights = nullptr;  ///< n; null: all 1
  FittedWeights fitted;
  const Taxonomy* taxonomy = nullptr;
  std::vector<Index> groups;          ///< of the nodes, 0 and up; that of the root is not used
  DenseView<const double> variances;  ///< 1 x groups, or d x groups: v of the nodes in a group, > 0
  double intercept_variance = 1.0;    ///< of each leaf's intercept; 0: there are none
};

struct WeightMoments {
  Matrix<double> squares;    ///< as variances: sum over nodes (and features) of the squared mean of w_n - w_parent(n)
  Matrix<double> spreads;    ///< the same of its posterior variance
  Matrix<double> variances;  ///< of the leaves' weights, d x C; empty unless asked for
  std::vector<double> intercept_variances;  ///< C
};

/// Throws InvalidArgument for bad input. Memory: n C numbers, a copy of the values of X, and what is returned.
WeightMoments weight_moments(const MomentsProblem& problem, bool with_variances, const Execution& execution);

/// out (d x C) = h: the diagonal of the observed information (8) at fitted weights.
void observed_information(const InputView& X, const FittedWeights& fitted, const double* row_weights,
                          DenseView<double> out, const Execution& execution);

}  // namespace taxolearn
