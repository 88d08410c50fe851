// One Gaussian over the weights (d) of all nodes of a tree: the prior N(w_parent, D_n^-1) with D_n diagonal and the root at
// zero, times what the leaves say, exp(eta . w - 1/2 w . A w).
#pragma once

#include <vector>

#include "taxolearn/base/parallel.hpp"
#include "taxolearn/classes/taxonomy.hpp"

namespace taxolearn {

class TreeGaussian {
 public:
  /// Borrows the tree.
  TreeGaussian(const Taxonomy& taxonomy, Index features);

  /// Room for what leaf c says: fill A (d x d) and eta (d) before solve(), which overwrites A.
  DenseView<double> leaf_precision(Index c) { return at(given_parent_, taxonomy_.inner() + c); }
  double* leaf_sum(Index c) { return sums_.row(taxonomy_.inner() + c); }

  /// D (nodes x d) > 0; the root's row is not used. Throws InvalidArgument where numbers leave the range of doubles.
  void solve(DenseView<const double> D, const Execution& execution);

  const double* mean(Index node) const { return means_.row(node); }
  DenseView<double> covariance(Index node) { return at(covariances_, node); }

  /// Of w_n - w_parent: squared means and variances, of every feature.
  const double* squares(Index node) const { return squares_.row(node); }
  const double* spreads(Index node) const { return spreads_.row(node); }

  /// log det of the covariance of all nodes together.
  double log_determinant() const { return log_determinant_; }

 private:
  DenseView<double> at(Matrix<double>& stacked, Index node) { return {stacked.row(node * d_), d_, d_}; }
  bool invert(Index node, DenseView<const double> D);
  void add_message(Index node, DenseView<const double> D);
  void take_down(Index node, DenseView<const double> D);

  const Taxonomy& taxonomy_;
  Index d_;
  Matrix<double> given_parent_;  // covariance of a node given its parent, one below the other; before, precisions
  Matrix<double> covariances_;
  Matrix<double> sums_, means_, squares_, spreads_;
  std::vector<double> log_determinants_;
  double log_determinant_ = 0.0;
};

}  // namespace taxolearn
