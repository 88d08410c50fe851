// The ridge with the least error on rows left out, for all ridges of a path at once.
#pragma once

#include <vector>

#include "label_matrix.hpp"
#include "normal_equations.hpp"

namespace taxolearn {

struct RidgePath {
  std::vector<double> ridges;  ///< in units of tr(X^T D X) / d, ascending
  std::vector<double> errors;  ///< weighted mean of |(y - mean - Z^T (x - mean)) Q|^2 over rows left out
  double best = 0.0;
};

/// Regresses random projections of the labels, Y Q, whose squared errors are those of Y up to a factor and a little
/// noise. On the training rows of a fold, H without its ridge becomes a small matrix on a block Krylov space, whose
/// eigenvectors make the solutions for all ridges, and their predictions of the rows left out, diagonal.
/// The weights of both arguments change.
template <class T>
RidgePath ridge_path(NormalEquations<T>& normal, LabelMatrix& Y, std::uint64_t seed, const Execution& execution);

}  // namespace taxolearn
