// Eigenvectors of symmetric matrices, compiled once for all sources, as the products are.
#pragma once

#include <vector>

#include "taxolearn/base/matrix.hpp"

namespace taxolearn {

/// Replaces a symmetric matrix by its eigenvectors, in columns, and returns the eigenvalues, from the smallest to the
/// largest. Reads the lower triangle; runs on the calling thread.
std::vector<double> symmetric_eigenvectors(DenseView<double> A);

}  // namespace taxolearn
