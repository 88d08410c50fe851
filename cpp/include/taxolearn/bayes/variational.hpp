// Hierarchical Bayesian logistic regression by variational inference (Gopal and Yang 2015, 3.1).
//
// q(W) q(alpha) maximizes a lower bound of log p(labels), where the softmax's log normalizer is replaced by Bouchard's
// upper bound (4), or each logistic function by the quadratic bound that it is made of. Given the bound's parameters xi and
// beta the problem is Gaussian, so q(W) is one Gaussian over all nodes, found exactly by two sweeps over the tree; the paper
// has a Gaussian for each node, independent of the others, which is a smaller family. Each step maximizes the bound over
// a part of its arguments: it never falls.
#pragma once

#include <cstdint>
#include <vector>

#include "taxolearn/bayes/moments.hpp"

namespace taxolearn {

struct VariationalProblem {
  DenseView<const double> X;                    ///< n x d
  Link link = Link::softmax;                    ///< or logistic
  const double* row_weights = nullptr;          ///< n; null: all 1
  const std::int64_t* label_offsets = nullptr;  ///< row i has the labels label_offsets[i] .. label_offsets[i + 1]
  const std::int32_t* labels = nullptr;         ///< classes; under softmax one each
  const Taxonomy* taxonomy = nullptr;
  std::vector<Index> groups;          ///< of the nodes, 0 and up; that of the root is not used
  std::vector<double> shapes;         ///< a of the groups' Gamma priors
  DenseView<const double> rates;      ///< b, 1 x groups or d x groups
  DenseView<const double> variances;  ///< as rates: where to begin
  double intercept_variance = 1.0;    ///< of each leaf's intercept; 0: there are none
};

struct VariationalSettings {
  int max_rounds = 1000;
  double tolerance = 1e-5;  ///< rounds end when the bound rises by less than this, relative to its size
};

struct VariationalResult {
  bool converged = false;
  std::vector<double> bounds;  ///< after each round
  Matrix<double> weights;      ///< means, d x C
  std::vector<double> intercepts;
  Matrix<double> variances;  ///< of the weights, d x C
  std::vector<double> intercept_variances;
  Matrix<double> rates;  ///< of the Gamma posteriors; their shapes are a + half the number of weights
};

/// Throws InvalidArgument for bad input. Time per round: n C d^2 and nodes d^3; memory: nodes d^2 and n C numbers.
VariationalResult fit_variational(const VariationalProblem& problem, const VariationalSettings& settings,
                                  const Execution& execution);

}  // namespace taxolearn
