// The contract of a coupling: how the functions of the classes go together a priori.
//
// The prior covariance of the class functions is G (C x C) times the kernel of the inputs (Seeger 2008, 3). A coupling
// applies G, knows factors of it, G = R R^T, and the gradient with respect to its parameters. All functions work on a
// block of consecutive rows, given as contiguous row-major arrays; the caller runs blocks in parallel. A coupling knows
// classes, never inputs or labels.
#pragma once

#include <memory>
#include <vector>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/classes/taxonomy.hpp"

namespace taxolearn {

class Coupling {
 public:
  virtual ~Coupling() = default;

  virtual Index classes() const = 0;

  /// Columns of R.
  virtual Index factors() const = 0;

  /// S <- S G in place, S (count x C).
  virtual void apply(Index count, float* S) const = 0;
  virtual void apply(Index count, double* S) const = 0;

  /// out (count x factors) = S R.
  virtual void to_factors(Index count, const double* S, double* out) const = 0;

  /// out (count x C) = A R^T, A (count x factors).
  virtual void from_factors(Index count, const double* A, double* out) const = 0;

  /// out[c] = G_cc.
  virtual void diag(double* out) const = 0;

  /// Number of parameters theta.
  virtual Index parameters() const = 0;

  /// Whether each of them is a log variance, that of one or more columns of R.
  virtual bool scales_factors() const { return true; }

  /// gradient[k] += d/dtheta_k of tr(E G(theta) H^T), E and H (count x C).
  virtual void bilinear_grad(Index count, const double* E, const double* H, double* gradient) const = 0;
};

/// Variances that share a parameter: element k has variance variances[k] and belongs to parameter groups[k] (-1:
/// fixed).
struct TiedVariances {
  std::vector<double> variances;  ///< finite, >= 0
  std::vector<Index> groups;      ///< empty: one group

  Index parameters() const;
  Index group(Index k) const { return groups.empty() ? 0 : groups[static_cast<std::size_t>(k)]; }
};

/// Classes without relation: G = diag(v).
class IndependentCoupling final : public Coupling {
 public:
  explicit IndependentCoupling(TiedVariances variances);

  Index classes() const override { return static_cast<Index>(tied_.variances.size()); }
  Index factors() const override { return classes(); }
  void apply(Index count, float* S) const override;
  void apply(Index count, double* S) const override;
  void to_factors(Index count, const double* S, double* out) const override;
  void from_factors(Index count, const double* A, double* out) const override;
  void diag(double* out) const override;
  Index parameters() const override { return tied_.parameters(); }
  void bilinear_grad(Index count, const double* E, const double* H, double* gradient) const override;

 private:
  TiedVariances tied_;
  std::vector<double> roots_;  ///< square roots of the variances
};

/// The function of a class is the sum of independent functions of the nodes on its path, the root left out:
/// G = Phi diag(v) Phi^T, with Phi[c, p] = 1 where node p is leaf c or above it (Seeger 2008, 3.1). R = Phi diag(sqrt
/// v) has one column per node but the root. Products are sweeps over the tree, O(nodes) a row; Phi is never formed.
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
