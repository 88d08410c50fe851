// Rows of predictors in blocks that fit a cache, for likelihoods.
#pragma once

#include <algorithm>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"
#include "taxolearn/base/vector.hpp"
#include "taxolearn/likelihood/likelihood.hpp"

namespace taxolearn {

inline Blocks blocks_of(const Matrix<double>& matrix) {
  return Blocks(matrix.rows(), std::max<Index>(1, vector_block / std::max<Index>(matrix.cols(), 1)));
}

/// Replaces predictors by residuals; returns the loss.
inline double to_residual(const Likelihood& likelihood, Matrix<double>& u, const Execution& execution) {
  return parallel_sum<double>(blocks_of(u), execution, [&](Index first, Index count) {
    return likelihood.residual(first, count, u.row(first));
  });
}

}  // namespace taxolearn
