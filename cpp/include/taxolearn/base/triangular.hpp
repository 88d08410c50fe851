// Triangular systems and the Cholesky factorization, compiled once for all sources, as the products are.
//
// All run on the calling thread, in place, and read the lower triangle of L only.
#pragma once

#include "taxolearn/base/matrix.hpp"

namespace taxolearn {

/// B = L^-1 B.
void solve_lower(DenseView<const double> L, DenseView<double> B);

/// B = L^-T B.
void solve_lower_transposed(DenseView<const double> L, DenseView<double> B);

/// B = B L^-1.
void solve_lower_right(DenseView<const double> L, DenseView<double> B);

/// B = B L^-T.
void solve_lower_transposed_right(DenseView<const double> L, DenseView<double> B);

/// A = L in A = L L^T, with zeros above the diagonal. False if A is not positive definite or not finite. Reads the
/// lower triangle.
bool factor_cholesky(DenseView<double> A);

}  // namespace taxolearn
