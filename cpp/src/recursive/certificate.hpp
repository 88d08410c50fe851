// Weights, objective and duality gap that dual variables stand for.
#pragma once

#include <memory>

#include "class_blocks.hpp"
#include "feature_rows.hpp"
#include "taxolearn/base/parallel.hpp"

namespace taxolearn {

/// What pairs of rows and classes add to the objective and to the gap: Fenchel's inequality
/// C loss(u) + conjugate(alpha) - alpha y u >= 0, whose terms add up to P - D at w = G a.
struct PairTerms {
  double loss = 0.0;
  double gap = 0.0;

  void add(Hinge kind, double cost, double alpha, double slack) {
    const double above = slack > 0.0 ? slack : 0.0;
    const bool squared = kind == Hinge::squared;
    const double own = cost * above * (squared ? above : 1.0);
    loss += own;
    gap += own - alpha * slack + (squared && cost > 0.0 ? alpha * alpha / (4.0 * cost) : 0.0);
  }
  PairTerms& operator+=(const PairTerms& other) {
    loss += other.loss;
    gap += other.gap;
    return *this;
  }
};

struct Certificate {
  double objective = 0.0;                      ///< P at these weights
  double gap = 0.0;                            ///< P - D
  std::unique_ptr<FeatureRows<double>> parts;  ///< D_k, see ClassFactor
};

/// All in double precision, a few rows at a time.
Certificate certify(const ClassBlocks& blocks, const std::vector<SparseColumn>& duals, const Execution& execution);

/// parts += what the dual variables (by row) stand for.
template <class T>
void add_duals(const ClassBlocks& blocks, const std::vector<SparseColumn>& duals, FeatureRows<T>& parts,
               const Execution& execution);

/// Of each node what it adds to its parent; on a graph the weights of each class. By feature.
std::vector<SparseColumn> weights_of(const ClassBlocks& blocks, const FeatureRows<double>& parts);

}  // namespace taxolearn
