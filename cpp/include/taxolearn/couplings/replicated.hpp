// Several copies of a coupling, for problems that are solved side by side.
#pragma once

#include "taxolearn/couplings/coupling.hpp"

namespace taxolearn {

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
  bool is_diagonal() const override { return inner_.is_diagonal(); }
  Index parameters() const override { return inner_.parameters(); }
  void bilinear_grad(Index count, const double* E, const double* H, double* gradient) const override {
    inner_.bilinear_grad(count * copies_, E, H, gradient);
  }

 private:
  const Coupling& inner_;
  Index copies_;
};

}  // namespace taxolearn
