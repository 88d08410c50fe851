// A coupling by factors: class functions that share a few functions with loadings of any sign.
#pragma once

#include <memory>

#include "taxolearn/couplings/coupling.hpp"

namespace taxolearn {

/// The function of a class is its own, as another coupling has it, plus a combination of p functions that all classes
/// share: u = R_0 f + B g, so G = R_0 R_0^T + B B^T and R = [R_0, B], with loadings B (C x p; Seeger 2008, 7.4.1, where
/// R_0 is left out). Parameters are those of the other coupling, then the entries of B row by row, which are not on log
/// scale. Products with B take O(C p) per row.
class FactorCoupling final : public Coupling {
 public:
  /// base null: G = B B^T, of rank p only.
  FactorCoupling(std::shared_ptr<const Coupling> base, Matrix<double> loadings);

  Index classes() const override { return loadings_.rows(); }
  Index factors() const override { return base_factors() + loadings_.cols(); }
  void apply(Index count, float* S) const override;
  void apply(Index count, double* S) const override;
  void to_factors(Index count, const double* S, double* out) const override;
  void from_factors(Index count, const double* A, double* out) const override;
  void diag(double* out) const override;
  Index parameters() const override;

  /// By the loadings that is E^T (H B) + H^T (E B).
  void bilinear_grad(Index count, const double* E, const double* H, double* gradient) const override;

 private:
  Index base_factors() const { return base_ == nullptr ? 0 : base_->factors(); }
  template <class T>
  void apply_rows(Index count, const Matrix<T>& loadings, T* S) const;

  std::shared_ptr<const Coupling> base_;
  Matrix<double> loadings_;
  Matrix<float> single_;  ///< the loadings in single precision
};

}  // namespace taxolearn
