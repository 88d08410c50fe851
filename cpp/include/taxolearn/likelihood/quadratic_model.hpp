// The second-order model of a likelihood: linear systems with its Hessian are fits.
#pragma once

#include "taxolearn/likelihood/likelihood.hpp"

namespace taxolearn {

/// The quadratic f(u) = 1/2 u . H u - c . u + constant with the Hessian H of another likelihood at given predictors.
/// Whoever fits it solves (I + H K) x = c, and has u = K x.
class QuadraticLikelihood final : public Likelihood {
 public:
  /// The curvature of the other likelihood at the predictors, and c (n x C); all must outlive it.
  QuadraticLikelihood(const Likelihood& other, const Matrix<double>& curvature, const Matrix<double>& c,
                      double constant)
      : other_(other), curvature_(curvature), c_(c), row_constant_(constant / static_cast<double>(other.rows())) {}

  Index rows() const override { return other_.rows(); }
  Index outputs() const override { return other_.outputs(); }
  Link link() const override { return Link::none; }
  double residual(Index first, Index count, double* u) const override;
  LinePoint line(Index first, Index count, double* u, const double* du) const override;
  void curvature(Index first, Index count, double* u) const override;
  void root(Index first, Index count, const double* curvature, double* x) const override {
    other_.root(first, count, curvature, x);
  }
  void root_transposed(Index first, Index count, const double* curvature, double* x) const override {
    other_.root_transposed(first, count, curvature, x);
  }
  void hessian(Index first, Index count, const double* curvature, double* x) const override {
    other_.hessian(first, count, curvature, x);
  }
  LinePoint hessian_line(Index first, Index count, const double* curvature, const double* u,
                         const double* du) const override {
    return other_.hessian_line(first, count, curvature, u, du);
  }
  void root_diagonal(Index first, Index count, const double* curvature, double* out) const override {
    other_.root_diagonal(first, count, curvature, out);
  }
  void add_hessian(Index first, Index count, const double* curvature, double* out) const override {
    other_.add_hessian(first, count, curvature, out);
  }
  HessianStructure hessian_structure() const override { return other_.hessian_structure(); }
  void hessian_diagonal(Index first, Index count, const double* curvature, double* out) const override {
    other_.hessian_diagonal(first, count, curvature, out);
  }
  std::unique_ptr<Likelihood> subset(const std::vector<Index>& rows, const std::vector<double>& factors) const override;

 private:
  const Likelihood& other_;
  const Matrix<double>& curvature_;
  const Matrix<double>& c_;
  double row_constant_;
};

}  // namespace taxolearn
