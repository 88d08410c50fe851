// The contract of a coupling: how the functions of the classes go together a priori.
//
// The prior covariance of the class functions is G (C x C) times the kernel of the inputs (Seeger 2008, 3). A coupling
// applies G, knows factors of it, G = R R^T, and the gradient with respect to its parameters. All functions work on a
// block of consecutive rows, given as contiguous row-major arrays; the caller runs blocks in parallel. A coupling knows
// classes, never inputs or labels.
#pragma once

#include <vector>

#include "taxolearn/base/matrix.hpp"

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

  /// Whether G is diagonal: class functions have nothing to do with each other.
  virtual bool is_diagonal() const { return false; }

  /// Number of parameters theta.
  virtual Index parameters() const = 0;

  /// gradient[k] += d/dtheta_k of tr(E G(theta) H^T), E and H (count x C).
  virtual void bilinear_grad(Index count, const double* E, const double* H, double* gradient) const = 0;

  /// The parameter that is the log variance of each column of R (-1: none), or nothing if parameters do more than scale
  /// columns. An optional capability: couplings that have it know their gradient from E R and H R alone.
  virtual std::vector<Index> parameter_of_factor() const { return {}; }

  /// The gradient above from products[j], the inner product of column j of E R with column j of H R. Needs
  /// `parameter_of_factor`.
  void factor_grad(const double* products, double* gradient) const;
};

/// Variances that share a parameter: element k has variance variances[k] and belongs to parameter groups[k] (-1:
/// fixed).
struct TiedVariances {
  std::vector<double> variances;  ///< finite, >= 0
  std::vector<Index> groups;      ///< empty: one group

  /// Throws InvalidArgument unless all is as said here.
  void check() const;
  Index parameters() const;
  Index group(Index k) const { return groups.empty() ? 0 : groups[static_cast<std::size_t>(k)]; }

  /// The groups of all elements from this one on.
  std::vector<Index> groups_from(Index first) const;
};

}  // namespace taxolearn
