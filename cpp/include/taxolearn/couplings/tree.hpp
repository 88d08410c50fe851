// The coupling of classes that are the leaves of a tree.
#pragma once

#include <memory>
#include <vector>

#include "taxolearn/classes/taxonomy.hpp"
#include "taxolearn/couplings/coupling.hpp"

namespace taxolearn {

/// The function of a class is the sum of independent functions of the nodes on its path, the root left out:
/// G = Phi diag(v) Phi^T, with Phi[c, p] = 1 where node p is leaf c or above it (Seeger 2008, 3.1). R = Phi diag(sqrt
/// v) has one column per node but the root. Products are sweeps over the tree, O(nodes) per row; Phi is never formed.
class TreeCoupling final : public Coupling {
 public:
  /// Variances and groups of all nodes; those of the root are not used.
  TreeCoupling(std::shared_ptr<const Taxonomy> taxonomy, TiedVariances variances);

  Index classes() const override { return taxonomy_->classes(); }
  Index factors() const override { return taxonomy_->nodes() - 1; }
  void apply(Index count, float* S) const override;
  void apply(Index count, double* S) const override;
  void to_factors(Index count, const double* S, double* out) const override;
  void from_factors(Index count, const double* A, double* out) const override;
  void diag(double* out) const override;
  Index parameters() const override { return tied_.parameters(); }
  void bilinear_grad(Index count, const double* E, const double* H, double* gradient) const override;
  std::vector<Index> parameter_of_factor() const override { return tied_.groups_from(1); }

 private:
  template <class T>
  void apply_rows(Index count, const T* variances, T* S) const;
  template <class T>
  void sweep(const T* variances, T* tile, T* sums) const;

  std::shared_ptr<const Taxonomy> taxonomy_;
  TiedVariances tied_;
  std::vector<double> roots_;  ///< square roots of the variances
  std::vector<float> single_;  ///< the variances in single precision
};

}  // namespace taxolearn
