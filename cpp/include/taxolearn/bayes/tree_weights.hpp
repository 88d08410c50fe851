// The weights of one feature at the nodes of a tree, a priori w_n ~ N(w_parent(n), v_n) with the root at zero.
//
// What the leaves say about them reaches all nodes by two sweeps, upwards and downwards: O(nodes), exact.
#pragma once

#include <vector>

#include "taxolearn/classes/taxonomy.hpp"

namespace taxolearn {

class TreeWeights {
 public:
  /// Borrows the tree.
  explicit TreeWeights(const Taxonomy& taxonomy);

  /// increments[n] = w_n - w_parent(n) for all nodes but the root, where the leaves have the weights given (C) and inner
  /// nodes their conditional means. These are the increments of a fit, whose leaves alone are known.
  void increments(const double* variances, const double* leaves, double* increments);

  /// Variances of the increments and of the nodes' weights, where leaf c was seen with a Gaussian error of precision
  /// h[c] >= 0. Elements of the root are 0.
  void posterior_variances(const double* variances, const double* h, double* increments, double* weights);

 private:
  const Taxonomy& taxonomy_;
  std::vector<double> precision_;  // of what the leaves below say about a node
  std::vector<double> sum_;        // times its mean
  std::vector<double> weights_;
};

}  // namespace taxolearn
