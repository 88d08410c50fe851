// The subspace preconditioner of a fit on coefficients: exact in a few directions of the inputs, the identity elsewhere.
//
// Numbers beside words may have a variance by which a few directions of the inputs have a curvature that is larger by
// orders of magnitude than all others; L-BFGS, whose history is short, then takes hundreds of iterations. These
// directions are known beforehand: they are the leading principal components of the narrow dense blocks. With their
// values V at the rows (n x q, columns sum to zero) and the kernel matrix M, V' = V (V^T M V)^(-1/2) spans them in
// coefficients: V'^T M V' = I. In weights, where the Hessian is I + sum_i J_i^T H_i J_i with H_i (C x C) that of row i's
// loss, it is within the subspace
//   I + R^T G R,   G = sum_i f_i f_i^T (x) H_i,   F = M V'  (row f_i),
// of size q times the columns of R, the factor of the coupling. All other directions have curvatures from 1 to some
// largest one; the identity stands for their typical curvature t, the geometric mean of these two, so that the inverse of
// the preconditioner is t (I + R^T G R)^-1 within the subspace. It adds to coefficients a
//   V' D,   D (q x C) = (t - 1) F^T a - t G ((I + R^T G R)^-1 (F^T a R)) R^T,
// and F D R R^T to their image: no kernel product. Intercepts do not notice, because V' sums to zero.
#pragma once

#include <memory>
#include <vector>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"
#include "taxolearn/fit/problem.hpp"
#include "taxolearn/operators/operator.hpp"

namespace taxolearn {

/// Whether a problem may have one, judged by its kernel and by the sizes of its blocks alone: what memory is counted for.
bool may_have_subspace_preconditioner(const Problem& problem);

template <class T>
class SubspacePreconditioner {
 public:
  /// The preconditioner of a problem whose likelihood is that of these rows of X, in this order (none: of all); null
  /// where no directions stand out, where they are too many, or where the work is large beside that of the products.
  static std::unique_ptr<SubspacePreconditioner> make(const Problem& problem, const std::vector<Index>& rows,
                                                      const Execution& execution);

  /// Recomputes the Hessian at predictors u (n x C). The operator is that of the rows; the first call takes a product
  /// with a few columns.
  void renew(const Matrix<double>& u, Operator<T>& kernel);

  /// Replaces coefficients (n x C) by the inverse times these, and their image likewise.
  void apply(T* coefficients, T* image) const;

  Index directions() const { return values_.cols(); }

  /// t.
  double typical_curvature() const { return typical_; }

 private:
  SubspacePreconditioner(const Problem& problem, Matrix<double> values, double other_variance,
                         const Execution& execution);

  void normalize(Operator<T>& kernel);
  void set_hessian(const Matrix<double>& u);
  void factorize();

  const Problem& problem_;
  Execution execution_;
  double other_variance_;   ///< the largest of other directions of the inputs, roughly
  double typical_ = 1.0;    ///< t
  Matrix<double> values_;   ///< V, from the first renewal on V', n x q
  Matrix<double> images_;   ///< F, n x q
  Matrix<double> hessian_;  ///< G, q C x q C
  Matrix<double> system_;   ///< Cholesky factor of I + R^T G R; empty: no correction
};

}  // namespace taxolearn
