// Recursive regularization with hinge losses (Gopal and Yang 2015, section 4): one class against the rest, for all
// classes at once, where the weights of a node lean on those of its parent.
//
//   P(w) = sum_n 1/(2 v_n) |w_n - w_parent(n)|^2 + sum_l sum_i C_il loss(y_il w_l . x_i)        (10)
//
// over all nodes n, the root included (its parent is zero), and leaves l; y_il = 1 if leaf l is among the labels of row
// i, else -1. Without a tree every class stands alone, and the answer is that of liblinear. The dual variables alpha_il
// give everything else: with a_l = sum_i alpha_il y_il x_i, and A_n its sum over the leaves below n,
//
//   w_n - w_parent(n) = v_n A_n,   D(alpha) = sum_il alpha_il - 1/2 sum_n v_n |A_n|^2 [- sum_il alpha_il^2 / (4 C_il)].
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

struct RecursiveProblem {
  InputView X;  ///< n x d, one matrix
  Index classes = 0;
  const std::int64_t* label_offsets = nullptr;  ///< row i has the labels label_offsets[i] .. label_offsets[i + 1]
  const std::int32_t* labels = nullptr;         ///< classes
  const Taxonomy* taxonomy = nullptr;           ///< null: classes stand alone
  std::vector<double> variances;                ///< v_n per node, of the classes if there is no tree; empty: all 1
  Hinge loss = Hinge::hinge;
  double cost = 1.0;                     ///< C_il is this times the weights of the row and of the class
  double bias = 1.0;                     ///< 0: no intercepts
  const double* row_weights = nullptr;   ///< n; null: all 1
  std::vector<double> positive_weights;  ///< of class l where y_il = 1; empty: all 1
  std::vector<double> negative_weights;  ///< of class l elsewhere
};

}  // namespace taxolearn
