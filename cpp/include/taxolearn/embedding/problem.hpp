// Label embeddings (Mineiro and Karampatziakis 2015): few numbers per class, V (C x k), that a linear function of the
// inputs predicts well, found without any matrix of classes times features.
//
// With X and Y centred at their weighted means (or not), rows weighted by D, H = X^T D X + ridge and B = X^T D Y, the
// columns of V are the first eigenvectors of a symmetric operator S that is known by its products:
//
//   rembrandt      S = B^T H^-1 B: best rank-constrained (ridge) regression, min |Y - X W|^2 over W of rank k  (1)
//   label_moments  S = Y^T D Y: principal label space transformation
//   random         no operator: an orthonormal random projection of the classes
//   pca            S = X^T D X on the features, which are embedded instead of the classes
//
// and the embedding of a row is W^T x + b, with W = H^-1 B V by conjugate gradients, or W = V for pca.
#pragma once

#include <cstdint>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/data/input.hpp"

namespace taxolearn {

enum class EmbeddingMethod { rembrandt, label_moments, random, pca };

struct EmbeddingProblem {
  InputView X;  ///< n x d
  Index classes = 0;
  const std::int64_t* label_offsets = nullptr;  ///< row i has the labels label_offsets[i] .. label_offsets[i + 1]
  const std::int32_t* labels = nullptr;         ///< classes
  const double* row_weights = nullptr;          ///< n; null: all 1
  bool center = true;                           ///< whether means are taken off, which nothing dense is made for
};

struct EmbeddingSettings {
  EmbeddingMethod method = EmbeddingMethod::rembrandt;
  Index components = 50;
  Index oversampling = 20;
  int rounds = 1;             ///< products with S before the last one
  double ridge = 0.0;         ///< in units of tr(X^T D X) / d; negative: chosen by leaving rows out
  double tolerance = 1e-4;    ///< on the residuals of the normal equations, relative to their right-hand sides
  int max_iterations = 1000;  ///< of conjugate gradients
  std::uint64_t seed = 0;
};

}  // namespace taxolearn
