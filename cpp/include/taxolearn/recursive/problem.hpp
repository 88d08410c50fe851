// Recursive regularization with hinge losses (Gopal and Yang 2015, section 4): one class against the rest, for all
// classes at once, where the weights of a node lean on those of its parent.
//
//   P(w) = sum_n 1/(2 v_n) |w_n - w_parent(n)|^2 + sum_l sum_i C_il loss(y_il w_l . x_i)        (10)
//
// over all nodes n, the root included (its parent is zero), and leaves l; y_il = 1 if leaf l is among the labels of row
// i, else -1. Without a tree every class stands alone, and the answer is that of liblinear. On a graph the first term is
// 1/2 sum_nm Q_nm w_n . w_m with the precision Q of its nodes, some of which are the classes. The dual variables alpha_il
// give everything else: with a_l = sum_i alpha_il y_il x_i, A_n its sum over the leaves below n, and G = Q^-1 at the classes,
//
//   w_n - w_parent(n) = v_n A_n,   D(alpha) = sum_il alpha_il - 1/2 sum_n v_n |A_n|^2 [- sum_il alpha_il^2 / (4 C_il)],
//   w_l = sum_m G_lm a_m, and 1/2 sum_lm G_lm a_l . a_m instead of the sum over nodes, on a graph.
//
// An intercept is the weight of one more feature, equal to `bias` in every row, so it is regularized like the others.
#pragma once

#include <cstdint>
#include <vector>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/classes/taxonomy.hpp"
#include "taxolearn/data/input.hpp"
#include "taxolearn/solver/coordinate.hpp"

namespace taxolearn {

/// Indices in ascending order and their values; all others are zero.
struct SparseColumn {
  std::vector<std::int32_t> indices;
  std::vector<double> values;
};

/// A symmetric positive definite matrix, row by row, of the nodes of a graph.
struct NodePrecision {
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> columns;  ///< ascending within a row
  std::vector<double> values;
  std::vector<std::int32_t> class_nodes;  ///< which node a class is

  Index nodes() const { return static_cast<Index>(offsets.size()) - 1; }

  /// take(column, value) for the elements of a row.
  template <class Take>
  void for_row(Index node, const Take& take) const {
    for (std::int64_t e = offsets[static_cast<std::size_t>(node)]; e < offsets[static_cast<std::size_t>(node + 1)];
         ++e) {
      take(static_cast<Index>(columns[static_cast<std::size_t>(e)]), values[static_cast<std::size_t>(e)]);
    }
  }
};

struct RecursiveProblem {
  InputView X;  ///< n x d, one matrix
  Index classes = 0;
  const std::int64_t* label_offsets = nullptr;  ///< row i has the labels label_offsets[i] .. label_offsets[i + 1]
  const std::int32_t* labels = nullptr;         ///< classes
  const Taxonomy* taxonomy = nullptr;           ///< null, and no graph: classes stand alone
  const NodePrecision* graph = nullptr;         ///< instead of a tree
  std::vector<double> variances;  ///< v_n per node, of the classes if there is no tree; empty: all 1, as on a graph
  Hinge loss = Hinge::hinge;
  double cost = 1.0;                     ///< C_il is this times the weights of the row and of the class
  double bias = 1.0;                     ///< 0: no intercepts
  const double* row_weights = nullptr;   ///< n; null: all 1
  std::vector<double> positive_weights;  ///< of class l where y_il = 1; empty: all 1
  std::vector<double> negative_weights;  ///< of class l elsewhere
};

}  // namespace taxolearn
