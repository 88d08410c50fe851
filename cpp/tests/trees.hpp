// Random trees of classes, and hierarchical models in dense algebra.
#pragma once

#include <memory>
#include <numeric>

#include "problems.hpp"
#include "taxolearn/classes/taxonomy.hpp"
#include "taxolearn/couplings/independent.hpp"
#include "taxolearn/couplings/tree.hpp"

namespace taxolearn::tests {

/// Parents in canonical order of the tree in which node k > 0 hangs below drawn[k] < k.
inline std::vector<Index> canonical(const std::vector<Index>& drawn) {
  const Index nodes = static_cast<Index>(drawn.size());
  std::vector<std::vector<Index>> children(drawn.size());
  for (Index k = 1; k < nodes; ++k) children[drawn[k]].push_back(k);
  std::vector<Index> inner, leaves, stack{0};
  while (!stack.empty()) {
    const Index node = stack.back();
    stack.pop_back();
    inner.push_back(node);
    std::vector<Index> below;
    for (const Index child : children[node]) (children[child].empty() ? leaves : below).push_back(child);
    stack.insert(stack.end(), below.rbegin(), below.rend());
  }
  std::vector<Index> order = inner, number(drawn.size()), out{-1};
  order.insert(order.end(), leaves.begin(), leaves.end());
  for (Index k = 0; k < nodes; ++k) number[order[k]] = k;
  for (Index k = 1; k < nodes; ++k) out.push_back(number[drawn[order[k]]]);
  return out;
}

/// A tree of any shape: each node hangs below one of the `reach` nodes before it, so 1 makes a chain and many a bush.
inline std::vector<Index> random_parents(Index nodes, Index reach, std::uint64_t seed) {
  Random random(seed);
  std::vector<Index> drawn{-1};
  for (Index k = 1; k < nodes; ++k) drawn.push_back(k - 1 - random.below(std::min(reach, k)));
  return canonical(drawn);
}

/// Phi (classes x nodes): 1 where a node is the leaf or above it, the root included.
MatrixXd paths(const Taxonomy& taxonomy);

/// Variances of all nodes, some zero, in two groups.
inline TiedVariances random_variances(Index nodes, std::uint64_t seed) {
  Random random(seed);
  TiedVariances out;
  for (Index k = 0; k < nodes; ++k) {
    out.variances.push_back(k % 7 == 3 ? 0.0 : 0.25 + random.uniform());
    out.groups.push_back(random.below(2));
  }
  out.groups.back() = 1;
  return out;
}

/// A root of the prior covariance of a tree: Phi diag(sqrt v), without the root's column.
MatrixXd dense_root(const Taxonomy& taxonomy, const TiedVariances& tied);

/// Checks all products of a coupling against its dense root.
void check_products(const Coupling& coupling, const MatrixXd& R, std::uint64_t seed);

/// Phi(w) = f(u) + 1/2 |w|^2 with w = (W, b) and u = sqrt(variance) X W R^T + sigma 1 b^T: the long Jacobian A, u = A
/// w.
struct CoupledProblem {
  DenseProblem flat;
  MatrixXd A;  ///< n C x (d roots + C), rows and columns in row-major order of u, W, b

  CoupledProblem(const DenseProblem& flat_, const MatrixXd& R);

  MatrixXd predictors(const VectorXd& w) const;
  VectorXd flattened(const MatrixXd& u) const;

  double objective(const VectorXd& w) const;
  VectorXd gradient(const VectorXd& w) const;

  /// Newton's method with the full Hessian and halved steps.
  VectorXd minimizer() const;
};

}  // namespace taxolearn::tests
