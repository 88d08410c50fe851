// The contract of a likelihood: everything the fit asks about labels, row by row.
//
// f(u) = sum_i f_i(u_i) is a convex loss of the predictors u (n x C). A likelihood knows labels and weights,
// never inputs. All functions work on a block of consecutive rows, given as a contiguous row-major array of
// doubles that fits a cache; the caller runs blocks in parallel. The duality gap needs no conjugate: see
// solver/space.hpp.
#pragma once

#include <memory>
#include <vector>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/likelihood/link.hpp"

namespace taxolearn {

/// Value and first two derivatives of a function of the step length.
struct LinePoint {
  double value = 0.0;
  double slope = 0.0;
  double curvature = 0.0;

  LinePoint& operator+=(const LinePoint& other) {
    value += other.value;
    slope += other.slope;
    curvature += other.curvature;
    return *this;
  }
};

/// What the Hessian H_i (C x C) of a row's loss is made of, for solvers that factorize it. D_i (C) is
/// Likelihood::hessian_diagonal.
enum class HessianStructure {
  diagonal,                 ///< H_i = diag(D_i)
  diagonal_minus_rank_one,  ///< H_i = diag(D_i) - D_i D_i^T / sum(D_i), zero where D_i is zero
  general,                  ///< nothing is known
};

class Likelihood {
 public:
  virtual ~Likelihood() = default;

  virtual Index rows() const = 0;

  /// Predictors per row, C.
  virtual Index outputs() const = 0;

  /// How predictors become probabilities.
  virtual Link link() const = 0;

  /// Replaces predictors u by the residual df/du; returns the sum of the losses.
  virtual double residual(Index first, Index count, double* u) const = 0;

  /// Derivatives of t -> f(u + t du) at t = 0. Overwrites u.
  virtual LinePoint line(Index first, Index count, double* u, const double* du) const = 0;

  /// The same two with the digits of single precision, for products that have no more: out = df/du, and the
  /// derivatives at u + step du. By default they go through the functions above.
  virtual double single_residual(Index first, Index count, const double* u, float* out) const;
  virtual LinePoint single_line(Index first, Index count, const double* u, double step, const float* du) const;

  /// Replaces predictors u by what the functions of the Hessian at u need, C numbers per row (for softmax the
  /// probabilities): their argument `curvature`.
  virtual void curvature(Index first, Index count, double* u) const = 0;

  /// x <- V x and x <- V^T x, where V V^T is the Hessian of f, block diagonal with a C x C block per row.
  virtual void root(Index first, Index count, const double* curvature, double* x) const = 0;
  virtual void root_transposed(Index first, Index count, const double* curvature, double* x) const = 0;

  /// x <- V V^T x. By default through the two functions above.
  virtual void hessian(Index first, Index count, const double* curvature, double* x) const;

  /// 1/2 u . V V^T u, du . V V^T u and du . V V^T du, as the derivatives of a line.
  virtual LinePoint hessian_line(Index first, Index count, const double* curvature, const double* u,
                                 const double* du) const;

  /// out = diagonal of V^T V.
  virtual void root_diagonal(Index first, Index count, const double* curvature, double* out) const = 0;

  /// out (C x C) += the sum of the rows' Hessians V V^T.
  virtual void add_hessian(Index first, Index count, const double* curvature, double* out) const = 0;

  virtual HessianStructure hessian_structure() const = 0;

  /// out = D of the structure. Throws InvalidArgument by default: under `general` there is none.
  virtual void hessian_diagonal(Index first, Index count, const double* curvature, double* out) const;

  /// The likelihood of the given rows, which may repeat, with their weights multiplied by factors (>= 0). Keeps what it
  /// needs of this one.
  virtual std::unique_ptr<Likelihood> subset(const std::vector<Index>& rows,
                                             const std::vector<double>& factors) const = 0;
};

}  // namespace taxolearn
