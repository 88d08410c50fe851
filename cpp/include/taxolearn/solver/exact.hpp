// The Newton system of a flat model solved exactly, in O(C n^3) (Seeger 2008, appendix C): the yardstick of the
// iterative solvers.
//
//   (I + W K) s = -g,   K = blockdiag over classes of K_c,   W = blockdiag over rows of the Hessians H_i of the loss
//
// Where H_i = diag(D_i), there is one system a class: with A_c = I + D_c^1/2 K_c D_c^1/2,
//
//   (I + D_c K_c)^-1 = I - D_c^1/2 A_c^-1 D_c^1/2 K_c.
//
// Where H_i = diag(D_i) - D_i D_i^T / w_i with w_i = sum(D_i), they are tied together. With pi_i = D_i / w_i, W is the
// limit of (D^-1 + t R R^T)^-1 for t to infinity, with R the stacked identities (R^T
// sums over classes). With E = (D^-1 + K)^-1, one block a class, the Woodbury formula gives
//
//   (I + W K)^-1 = I - (W^-1 + K)^-1 K,   (W^-1 + K)^-1 = E - E R (sum_c E_c)^-1 R^T E.
//
// Nothing is divided by pi or w: with w = diag(w_i), A_c = I + D_c^1/2 K_c D_c^1/2 and F_c = pi_c^1/2 A_c^-1 pi_c^1/2,
// E_c = w^1/2 F_c w^1/2, and the outer w^1/2 cancel against the inverse of the sum:
//
//   (W^-1 + K)^-1 = w^1/2 (F - F R (sum_c F_c)^-1 R^T F) w^1/2.
//
// The eigenvalues of sum_c F_c lie between 1 / max_c |A_c| and 1, because the pi_c sum to one. So its Cholesky factor
// exists whatever the weights and however many of the pi are zero; a row of weight zero is a row of the identity.
#pragma once

#include <vector>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"

namespace taxolearn {

class ExactSystem {
 public:
  /// K_c = matrices[matrix_of_class[c]], each (n x n), symmetric, and borrowed: they must outlive the system.
  ExactSystem(std::vector<DenseView<const double>> matrices, std::vector<Index> matrix_of_class, Index rows);

  /// Prepares solve() for H_i = diag(D_i), D (n x C row-major, >= 0). Throws InvalidArgument if some A_c is not
  /// positive definite.
  void factor_diagonal(const double* D, const Execution& execution);

  /// The same for H_i = diag(D_i) - D_i D_i^T / sum(D_i), zero where D_i is zero.
  void factor_diagonal_minus_rank_one(const double* D, const Execution& execution);

  /// s = -(I + W K)^-1 g, given K g as well; all n x C row-major. s may be g or Kg.
  void solve(const double* g, const double* Kg, double* s, const Execution& execution);

  Index rows() const { return rows_; }
  Index classes() const { return static_cast<Index>(matrix_of_class_.size()); }

  /// Memory for n rows and C classes, at most: C + 2 matrices (n x n), besides the K_c.
  static double bytes(Index rows, Index classes) {
    const double n = static_cast<double>(rows);
    return static_cast<double>(sizeof(double)) * n * n * static_cast<double>(classes + 2);
  }

 private:
  void prepare(const double* D);
  void factor_class(Index c, DenseView<double> A, const Execution& execution);
  void solve_diagonal(const double* g, const double* Kg, double* s, const Execution& execution);
  DenseView<double> inner(Index c) { return {inner_.data() + c * rows_ * rows_, rows_, rows_}; }
  void multiply_inner(const double* vectors, Index stride, double* out, const Execution& execution);

  std::vector<DenseView<const double>> matrices_;
  std::vector<Index> matrix_of_class_;
  Index rows_;
  bool factored_ = false;
  bool rank_one_ = false;
  Buffer<double> inner_;        ///< the F_c, or Cholesky factors of the A_c, one after the other
  Buffer<double> sum_;          ///< Cholesky factor of sum_c F_c, in the lower triangle
  Buffer<double> scratch_;      ///< Cholesky factor of one A_c
  Buffer<double> root_weight_;  ///< n, of the w_i
  Buffer<double> root_pi_;      ///< C x n
  Buffer<double> root_D_;       ///< C x n
  Buffer<double> vectors_;      ///< C x n
  Buffer<double> products_;     ///< C x n
  Buffer<double> correction_;   ///< n
};

}  // namespace taxolearn
