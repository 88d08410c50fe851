// Label embeddings: fit.
#pragma once

#include <vector>

#include "taxolearn/base/parallel.hpp"
#include "taxolearn/embedding/problem.hpp"

namespace taxolearn {

struct EmbeddingResult {
  bool converged = false;           ///< whether all systems were solved to the tolerance
  int iterations = 0;               ///< products with H, each with a block of right-hand sides
  Matrix<double> components;        ///< V, C x k (d x k for pca); k is smaller than asked for if S has a smaller rank
  std::vector<double> values;       ///< eigenvalues of S, or those of the rows' moments for random projections
  Matrix<double> weights;           ///< W, d x k
  std::vector<double> intercepts;   ///< b
  Matrix<double> moments;           ///< weighted mean of z z^T over rows with embeddings z less their mean, k x k
  std::vector<double> mean;         ///< weighted mean of the rows' embeddings
  double ridge = 0.0;               ///< in units of tr(X^T D X) / d
  std::vector<double> residuals;    ///< |B v_j - H w_j| / |B v_j|, computed anew at the solution
  double objective = 0.0;           ///< |Y V - X W|^2 + ridge |W|^2
  double gap = 0.0;                 ///< objective - its minimum over W <= gap; infinite without a ridge
  std::vector<double> path_ridges;  ///< that were compared
  std::vector<double> path_errors;  ///< their mean squared errors on rows left out, of all labels, without a constant
  double seconds = 0.0;
};

/// Throws InvalidArgument for bad input. T is the precision of products with X; the result is the same for any number of
/// threads. Memory beside X and its copies: k (C + d) for the result, and n + 5 d + 2 C for each of the 64 columns that
/// are at work at a time. A path of ridges takes up to 320 MB more.
template <class T>
EmbeddingResult fit_embedding(const EmbeddingProblem& problem, const EmbeddingSettings& settings,
                              const Execution& execution);

}  // namespace taxolearn
