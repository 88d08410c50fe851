// Random trees of classes, and hierarchical models in dense algebra.
#pragma once

#include <memory>
#include <numeric>

#include "problems.hpp"
#include "taxolearn/classes/coupling.hpp"
#include "taxolearn/classes/taxonomy.hpp"

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
inline MatrixXd paths(const Taxonomy& taxonomy) {
  MatrixXd out = MatrixXd::Zero(taxonomy.classes(), taxonomy.nodes());
  for (Index c = 0; c < taxonomy.classes(); ++c) {
    for (Index node = taxonomy.inner() + c; node >= 0; node = taxonomy.parent(node)) out(c, node) = 1.0;
  }
  return out;
}

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
inline MatrixXd dense_root(const Taxonomy& taxonomy, const TiedVariances& tied) {
  const Eigen::Map<const VectorXd> v(tied.variances.data(), taxonomy.nodes());
  const MatrixXd scaled = paths(taxonomy) * v.cwiseSqrt().asDiagonal();
  return scaled.rightCols(taxonomy.nodes() - 1);
}

/// Phi(w) = f(u) + 1/2 |w|^2 with w = (W, b) and u = sqrt(variance) X W R^T + sigma 1 b^T: the long Jacobian A, u = A
/// w.
struct CoupledProblem {
  DenseProblem flat;
  MatrixXd A;  ///< n C x (d roots + C), rows and columns in row-major order of u, W, b

  CoupledProblem(const DenseProblem& flat_, const MatrixXd& R) : flat(flat_) {
    const Index n = flat.Z.rows(), d = flat.Z.cols() - 1, C = R.rows(), roots = R.cols();
    A = MatrixXd::Zero(n * C, d * roots + C);
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < d; ++j) A.block(i * C, j * roots, C, roots) = flat.Z(i, j) * R;
      A.block(i * C, d * roots, C, C) = flat.Z(i, d) * MatrixXd::Identity(C, C);
    }
  }

  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  MatrixXd predictors(const VectorXd& w) const {
    const VectorXd u = A * w;
    return Eigen::Map<const RowMajor>(u.data(), flat.Y.rows(), flat.Y.cols());
  }
  VectorXd flattened(const MatrixXd& u) const {
    const RowMajor rows = u;
    return Eigen::Map<const VectorXd>(rows.data(), rows.size());
  }

  double objective(const VectorXd& w) const { return flat.loss(predictors(w)) + 0.5 * w.squaredNorm(); }
  VectorXd gradient(const VectorXd& w) const { return w + A.transpose() * flattened(flat.residual(predictors(w))); }

  /// Newton's method with the full Hessian and halved steps.
  VectorXd minimizer() const {
    const Index C = flat.Y.cols();
    VectorXd w = VectorXd::Zero(A.cols());
    for (int k = 0; k < 60; ++k) {
      const MatrixXd pi = softmax(predictors(w));
      MatrixXd H = MatrixXd::Identity(w.size(), w.size());
      for (Index i = 0; i < pi.rows(); ++i) {
        const MatrixXd block = A.middleRows(i * C, C);
        const MatrixXd diagonal = pi.row(i).asDiagonal();
        H += flat.s[i] * block.transpose() * (diagonal - pi.row(i).transpose() * pi.row(i)) * block;
      }
      const VectorXd g = gradient(w);
      const VectorXd step = H.llt().solve(g);
      double length = 1.0;
      while (length > 1e-8 && objective(w - length * step) > objective(w)) length *= 0.5;
      w -= length * step;
      if (g.norm() < 1e-14) break;
    }
    return w;
  }
};

}  // namespace taxolearn::tests
