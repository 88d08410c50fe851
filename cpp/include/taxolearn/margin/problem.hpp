// Max-margin Markov trees for several labels per row (H-M3; Rousu, Saunders, Szedmak, Shawe-Taylor 2006): one function
// scores all labels of a row together.
//
// Labels are the nodes 0 .. k - 1 of a forest, y in {-1, 1}^k. Every node has an edge to its parent; that of a top node
// leads to a root which is always 1. The paper's joint features are phi_e(x, y_e) = [y_e = u_e] x for the labelings u_e of
// every edge, and its problem, with a slack per row that margins scaled by a loss need, is
//
//   min_W 1/2 |W|^2 + sum_i C_i max_y (loss(y_i, y) - W . (phi(x_i, y_i) - phi(x_i, y))).                          (1)
//
// Four weight vectors per edge are more than it takes. W is a sum over rows of multiples of x_i, so it suffices to look at
// the multipliers mu_e(u) of one row, whose sum over u is zero. With the signs a of the parent and b of the child,
// [y_e = u] = (1 + a a_u + b b_u + ab a_u b_u) / 4, so mu_e(u) = (A a_u + B b_u + R a_u b_u) / 4, and for two rows
// sum_u mu_e(u) mu'_e(u) = (A A' + B B' + R R') / 4. A and B are moments of the nodes at the ends of the edge, the same in
// every edge that a node has. So there are, per node, one vector V_j = sum_i m_ij x_i and, per edge between two nodes, one
// vector T_j = sum_i r_ij x_i, two per node instead of four per edge:
//
//   W . phi(x, y) = 1/4 (sum_j n_j y_j V_j . x + sum_j y_parent(j) y_j T_j . x),
//   |W|^2 = 1/4 (sum_j n_j |V_j|^2 + sum_j |T_j|^2),
//
// where n_j is the number of edges of node j, one more at the top (there the root makes A zero and R = B). The components
// below are these: signs y of the nodes first, then products of a node's sign and its parent's for all nodes but the top
// ones; omega is n_j / 4 and 1 / 4. The dual (8) in these moments is that of solver/conditional_gradient.hpp.
//
// Losses (2.1), all of them zero for y = y_i alone:
//   zero_one      1
//   hamming       number of wrong labels, the symmetric difference
//   hierarchical  sum of c_j over labels that are wrong while the parent is right; c_j is given
//
// As in the paper, all 2^k labelings compete in (1), also those with a label whose parent is missing; predictions are
// unions of partial paths.
#pragma once

#include <cstdint>
#include <vector>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/data/input.hpp"
#include "taxolearn/kernels/kernel.hpp"

namespace taxolearn {

/// Nodes in an order in which top nodes come first and every other one after its parent.
class LabelForest {
 public:
  /// parents[j], -1 at the top. Throws InvalidArgument for another order.
  explicit LabelForest(std::vector<std::int32_t> parents);

  Index nodes() const { return static_cast<Index>(parents_.size()); }
  Index tops() const { return tops_; }
  Index components() const { return 2 * nodes() - tops_; }
  std::int32_t parent(Index node) const { return parents_[static_cast<std::size_t>(node)]; }
  Index pair(Index node) const { return nodes() + node - tops_; }  ///< component of a node and its parent
  const std::vector<double>& omega() const { return omega_; }

  /// The components of a labeling, from its first `nodes` ones.
  void complete(std::int8_t* signs) const;

 private:
  std::vector<std::int32_t> parents_;
  std::vector<double> omega_;
  Index tops_ = 0;
};

enum class MarginLoss { zero_one, hamming, hierarchical };

struct MarginProblem {
  InputView X;                                  ///< n x d, one matrix
  const Kernel* kernel = nullptr;               ///< null: linear, with weights
  const LabelForest* forest = nullptr;          ///
  const std::int64_t* label_offsets = nullptr;  ///< row i has the labels label_offsets[i] .. label_offsets[i + 1]
  const std::int32_t* labels = nullptr;         ///< nodes; with each one its parents
  MarginLoss loss = MarginLoss::hamming;
  std::vector<double> scales;           ///< c_j of the hierarchical loss; empty: all 1
  double cost = 1.0;                    ///< C_i is this times the weight of the row
  double bias = 1.0;                    ///< value of one more feature of every row; 0: none
  const double* row_weights = nullptr;  ///< n; null: all 1
  double memory_limit = 4e9;  ///< bytes that a kernel matrix may take; if it needs more, it is computed again and again
};

}  // namespace taxolearn
