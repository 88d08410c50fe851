// A coupling of classes that have nothing in common.
#pragma once

#include <vector>

#include "taxolearn/couplings/coupling.hpp"

namespace taxolearn {

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
  bool is_diagonal() const override { return true; }
  Index parameters() const override { return tied_.parameters(); }
  void bilinear_grad(Index count, const double* E, const double* H, double* gradient) const override;
  std::vector<Index> parameter_of_factor() const override { return tied_.groups_from(0); }

 private:
  TiedVariances tied_;
  std::vector<double> roots_;  ///< square roots of the variances
};

}  // namespace taxolearn
