// Folds of cross-validation, and what their fits and linear systems are made of.
#pragma once

#include <memory>
#include <vector>

#include "taxolearn/couplings/coupling.hpp"
#include "taxolearn/likelihood/likelihood.hpp"

namespace taxolearn {

struct Folds {
  std::vector<Index> of_row;  ///< the fold in which a row is held out; -1: in none
  Index count = 0;

  Index rows() const { return static_cast<Index>(of_row.size()); }
  std::vector<Index> held_out(Index fold) const;
  std::vector<Index> trained(Index fold) const;
};

/// The coupling of `copies` sets of classes that have nothing to do with each other, side by side: G on each of them.
/// Row i of an n x (copies C) array holds `copies` rows of length C, so in memory it is an (n copies) x C array. Its
/// parameters are those of the one coupling, which must outlive it.
class ReplicatedCoupling final : public Coupling {
 public:
  ReplicatedCoupling(const Coupling& inner, Index copies) : inner_(inner), copies_(copies) {}

  Index classes() const override { return copies_ * inner_.classes(); }
  Index factors() const override { return copies_ * inner_.factors(); }
  void apply(Index count, float* S) const override { inner_.apply(count * copies_, S); }
  void apply(Index count, double* S) const override { inner_.apply(count * copies_, S); }
  void to_factors(Index count, const double* S, double* out) const override {
    inner_.to_factors(count * copies_, S, out);
  }
  void from_factors(Index count, const double* A, double* out) const override {
    inner_.from_factors(count * copies_, A, out);
  }
  void diag(double* out) const override;
  Index parameters() const override { return inner_.parameters(); }
  bool scales_factors() const override { return inner_.scales_factors(); }
  void bilinear_grad(Index count, const double* E, const double* H, double* gradient) const override {
    inner_.bilinear_grad(count * copies_, E, H, gradient);
  }

 private:
  const Coupling& inner_;
  Index copies_;
};

/// The quadratic f(u) = 1/2 u . H u - c . u + constant with the Hessian H of another likelihood at a given state.
/// Whoever fits it solves (I + H K) x = c, and has u = K x.
class QuadraticLikelihood final : public Likelihood {
 public:
  /// state and c (n x C); all must outlive it.
  QuadraticLikelihood(const Likelihood& curved, const Matrix<double>& state, const Matrix<double>& c, double constant)
      : curved_(curved), state_(state), c_(c), row_constant_(constant / static_cast<double>(curved.rows())) {}

  Index rows() const override { return curved_.rows(); }
  Index classes() const override { return curved_.classes(); }
  double row_weight(Index i) const override { return curved_.row_weight(i); }
  double residual(Index first, Index count, double* u) const override;
  LinePoint line(Index first, Index count, double* u, const double* du) const override;
  void curve(Index first, Index count, double* u) const override;
  void root(Index first, Index count, const double* state, double* x) const override {
    curved_.root(first, count, state, x);
  }
  void root_transposed(Index first, Index count, const double* state, double* x) const override {
    curved_.root_transposed(first, count, state, x);
  }
  void hessian(Index first, Index count, const double* state, double* x) const override {
    curved_.hessian(first, count, state, x);
  }
  LinePoint hessian_line(Index first, Index count, const double* state, const double* u,
                         const double* du) const override {
    return curved_.hessian_line(first, count, state, u, du);
  }
  void root_diagonal(Index first, Index count, const double* state, double* out) const override {
    curved_.root_diagonal(first, count, state, out);
  }
  void add_hessian(Index first, Index count, const double* state, double* out) const override {
    curved_.add_hessian(first, count, state, out);
  }
  std::unique_ptr<Likelihood> gather(const std::vector<Index>& rows, const std::vector<double>& factors) const override;

 private:
  const Likelihood& curved_;
  const Matrix<double>& state_;
  const Matrix<double>& c_;
  double row_constant_;
};

}  // namespace taxolearn
