// Conjugate gradients for A X = B with many right-hand sides and a symmetric positive semidefinite A that is known by its
// products. All columns share one Krylov space, so there are fewer products than for each column alone: for d unknowns
// and s columns no more than d / s, but for rounding.
//
// Directions are made orthonormal in every iteration, and those that depend on others are dropped (the breakdown-free
// variant of Ji and Li 2017); a column that is accurate asks for no more directions. Small matrices are in double
// precision, the others in that of the products.
#pragma once

#include <functional>
#include <vector>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"

namespace taxolearn {

template <class T>
struct BlockSystem {
  std::function<void(DenseView<const T> X, DenseView<T> out)> apply;     ///< out = A X, for any number of columns
  std::vector<double> diagonal;                                          ///< approximately A's, positive
  std::function<void(int iterations, double relative_residual)> report;  ///< after each iteration; may be empty
};

struct BlockCgResult {
  int iterations = 0;  ///< products with A
  bool converged = false;
};

/// Solves from X = 0 until |B_j - A X_j| <= tolerance |B_j| for every column j. B becomes the residual.
template <class T>
BlockCgResult block_cg(const BlockSystem<T>& system, DenseView<T> B, DenseView<T> X, double tolerance,
                       int max_iterations, const Execution& execution);

/// A^T B in double precision, the same bits for any number of threads.
template <class T>
Matrix<double> inner_products(DenseView<const T> A, DenseView<const T> B, const Execution& execution);

/// out = A S, or out += A S, for a small S.
template <class T>
void multiply_small(DenseView<const T> A, DenseView<const double> S, bool add, DenseView<T> out,
                    const Execution& execution);

/// Orthonormal columns with the same span as those of A, fewer if these depend on each other.
template <class T>
Matrix<T> orthonormal(DenseView<const T> A, const Execution& execution);

}  // namespace taxolearn
