// A kernel matrix by a few of its columns and its diagonal (Seeger 2008, 7.4.3).
//
//   M ~ M~ = L L^T + diag(residual),   L (n x r),   residual = diag(M - L L^T) >= 0
//
// With I the pivots, L L^T = B A^-1 B^T for B = M[:, I] and A = M[I, I] = L_I L_I^T, where L_I (the rows of the pivots)
// is lower triangular. M~ has the diagonal and the pivot columns of M. New rows see the pivots only:
//   M~(X*, X) = M(X*, X_I) L_I^-T L^T.
#pragma once

#include <memory>

#include "taxolearn/kernels/kernel.hpp"
#include "taxolearn/operators/incomplete_cholesky.hpp"
#include "taxolearn/operators/operator.hpp"

namespace taxolearn {

/// L_I^-T L^T S (r x m), for S (n x m): predictions are M(X*, X_I) times it.
Matrix<double> basis_coefficients(const LowRankFactor& factor, DenseView<const double> S,
                                  const Execution& execution = Execution{});

/// M~ as an operator. Products cost 4 n r m flops, bilinear_grad O(n r (r + m)) flops and n r kernel derivatives.
/// Holds a view of the inputs, which must outlive it.
template <class T>
class LowRank final : public Operator<T> {
 public:
  LowRank(std::shared_ptr<const Kernel> kernel, const InputView& X, Index max_rank, double tolerance,
          const Execution& execution);

  /// With the factor of all rows of X that another operator has computed.
  LowRank(std::shared_ptr<const Kernel> kernel, const InputView& X, std::shared_ptr<const LowRankFactor> factor,
          const Execution& execution);

  /// On some rows of the inputs, with their factor.
  LowRank(std::shared_ptr<const Kernel> kernel, InputRows rows, std::shared_ptr<const LowRankFactor> factor,
          const Execution& execution);

  Index rows() const override { return rows_.count(); }
  void apply(DenseView<const T> S, DenseView<T> out, const T* shift, const Execution& execution) override;

  /// In double precision, because L_I^-T may be large.
  void apply_cross(const InputView& Xnew, DenseView<const T> S, DenseView<T> out, const Execution& execution) override;

  void diag(double* out) const override { kernel_->diag(rows_, out); }
  Index parameters() const override { return kernel_->parameters(); }

  /// With the pivots held fixed.
  void bilinear_grad(DenseView<const T> E, DenseView<const T> F, double* gradient, const Execution& execution) override;

  /// Factorizes anew, on those rows alone.
  std::unique_ptr<Operator<T>> subset(const std::vector<Index>& rows, const Execution& execution) override;

  std::string algorithm() const override { return "low_rank"; }

  Index rank() const { return factor_->rank(); }
  double missing() const { return factor_->missing(); }
  std::shared_ptr<const LowRankFactor> factor() const { return factor_; }

  /// The pivots as rows of the original inputs. Must not be used when there are none.
  InputRows basis() const;

 private:
  void arrange(const Execution& execution);  ///< makes the copy of the factor in precision T

  std::shared_ptr<const Kernel> kernel_;
  InputRows rows_;
  std::shared_ptr<const LowRankFactor> factor_;
  Buffer<T> copy_;          ///< of L, where its precision is not T
  DenseView<const T> L_;    ///< L in precision T
  Buffer<T> residual_;      ///< in precision T
  Buffer<T> coefficients_;  ///< r x m, between the two products
  Buffer<T> partial_;       ///< sums over segments of rows
};

}  // namespace taxolearn
