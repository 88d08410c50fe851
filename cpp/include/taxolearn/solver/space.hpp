// What a solver sees of a problem: a vector space with an inner product, a point in it, and a convex function
// of the form Phi(x) = f(A x) + 1/2 |x|^2, where |.| is the norm of the space.
//
// Vectors live in numbered slots. A solver keeps inner products and linear combinations of slots; it never
// touches an element. So the same solver runs on dual coefficients in the kernel's metric and on primal
// weights (DESIGN 4.9), and its own work is that of matrices as small as its history.
//
// Because Phi is 1-strongly convex in this norm, Phi(x) - min Phi <= 1/2 |grad Phi(x)|^2: half the squared
// norm of the gradient is a certified gap. It is exactly the duality gap at the dual point -grad f(A x): by
// Fenchel's equality for f the gap is r.u + 1/2 |x|^2 + 1/2 |A^T r|^2 with u = A x and r = grad f(u), which
// is 1/2 |x + A^T r|^2.
#pragma once

#include <vector>

namespace taxolearn {

/// Value and first two derivatives of the objective along the current direction.
struct LineValue {
  double value = 0.0;
  double slope = 0.0;
  double curvature = 0.0;
};

class SearchSpace {
 public:
  virtual ~SearchSpace() = default;

  /// Moves the point by step times the direction, writes the gradient at the new point into a slot and returns the
  /// objective there. One kernel product. The first call, before there is a direction, comes with step 0.
  virtual double advance(double step, int slot) = 0;

  /// Inner products of one slot with each of the listed slots.
  virtual std::vector<double> inner(int slot, const std::vector<int>& others) = 0;

  /// slot `into` <- sum_k coefficients[k] slot k (over all slots; zero coefficients are skipped, `into` may
  /// have one). The result is the direction of line() and advance().
  virtual void combine(const std::vector<double>& coefficients, int into) = 0;

  /// Whether the space has a preconditioner, an approximation of the Hessian. If so, it has one slot more than it was
  /// asked for, from the first renewal on.
  virtual bool has_preconditioner() const { return false; }

  /// Computes it anew at the current point.
  virtual void renew_preconditioner() {}

  /// slot `into` <- inverse of the preconditioner times sum_k coefficients[k] slot k. Does not change the direction.
  virtual void solve_preconditioner(const std::vector<double>& coefficients, int into) {
    static_cast<void>(coefficients);
    static_cast<void>(into);
  }

  /// The objective at the current point plus step times the direction. No kernel product.
  virtual LineValue line(double step) = 0;
};

}  // namespace taxolearn
