// Products with the prior covariance of all classes at all rows,
//
//   K S = sum_l M_l S G_l + sigma^2 1 1^T S,   S (n x C),   G_l = R_l R_l^T,
//
// where sigma^2 is the intercept variance and R_l holds the columns of R, G = R R^T, whose functions have kernel l.
// With one kernel the coupling is applied in place after M (C columns of M); with several, every column of R meets its
// own kernel (columns of R altogether).
#pragma once

#include <vector>

#include "taxolearn/base/parallel.hpp"
#include "taxolearn/fit/problem.hpp"
#include "taxolearn/operators/operator.hpp"

namespace taxolearn {

/// The columns of R in the order of their kernels: those of kernel l are at begin[l] .. begin[l + 1].
struct KernelColumns {
  std::vector<Index> begin;
  std::vector<Index> factor;  ///< column of R at each place

  /// kernel_of: the kernel of each column of R, in [0, kernels).
  KernelColumns(const std::vector<Index>& kernel_of, Index kernels);
  Index size() const { return static_cast<Index>(factor.size()); }
};

/// out (count x columns) = S R, columns in the order of their kernels; coupling null: R = I.
void to_kernel_columns(const Coupling* coupling, const KernelColumns& columns, Index count, const double* S,
                       double* out);

/// out (count x C) = A R^T, A (count x columns) in that order.
void from_kernel_columns(const Coupling* coupling, const KernelColumns& columns, Index count, const double* A,
                         double* out);

template <class T>
class KernelProduct {
 public:
  /// Borrows everything. One operator per kernel of the problem.
  KernelProduct(const Problem& problem, std::vector<Operator<T>*> operators);

  /// out = K S, both n x C.
  void apply(const T* S, T* out, const Execution& execution);

  /// out[i, c] = the diagonal of K.
  void diag(Matrix<double>& out) const;

  /// The kernel of the first functions: where there is one, of all.
  Operator<T>& kernel() { return *operators_.front(); }

  std::string algorithm() const { return operators_.front()->algorithm(); }

 private:
  void apply_shared(DenseView<const T> S, DenseView<T> out, const T* shift, const Execution& execution);
  void apply_own(DenseView<const T> S, DenseView<T> out, const T* shift, const Execution& execution);

  const Problem& problem_;
  std::vector<Operator<T>*> operators_;
  KernelColumns columns_;
  Buffer<T> functions_;  ///< n x columns of R, with own kernels
  Buffer<T> images_;
};

}  // namespace taxolearn
