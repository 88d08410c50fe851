#include "taxolearn/bayes/tree_weights.hpp"

#include <algorithm>

namespace taxolearn {

TreeWeights::TreeWeights(const Taxonomy& taxonomy)
    : taxonomy_(taxonomy),
      precision_(static_cast<std::size_t>(taxonomy.nodes())),
      sum_(static_cast<std::size_t>(taxonomy.nodes())),
      weights_(static_cast<std::size_t>(taxonomy.nodes())) {}

void TreeWeights::increments(const double* variances, const double* leaves, double* increments) {
  const Index inner = taxonomy_.inner(), nodes = taxonomy_.nodes();
  double* const precision = precision_.data();
  double* const sum = sum_.data();
  double* const w = weights_.data();
  std::fill(precision, precision + inner, 0.0);
  std::fill(sum, sum + inner, 0.0);
  for (Index n = inner; n < nodes; ++n) {
    const Index parent = taxonomy_.parent(n);
    precision[parent] += 1.0 / variances[n];
    sum[parent] += leaves[n - inner] / variances[n];
  }
  for (Index n = inner - 1; n > 0; --n) {
    const Index parent = taxonomy_.parent(n);
    const double share = 1.0 / (1.0 + variances[n] * precision[n]);
    precision[parent] += share * precision[n];
    sum[parent] += share * sum[n];
  }
  w[0] = increments[0] = 0.0;
  for (Index n = 1; n < inner; ++n) {
    const double above = w[taxonomy_.parent(n)];
    w[n] = (above + variances[n] * sum[n]) / (1.0 + variances[n] * precision[n]);
    increments[n] = w[n] - above;
  }
  for (Index n = inner; n < nodes; ++n) increments[n] = leaves[n - inner] - w[taxonomy_.parent(n)];
}

void TreeWeights::posterior_variances(const double* variances, const double* h, double* increments, double* weights) {
  const Index inner = taxonomy_.inner(), nodes = taxonomy_.nodes();
  double* const precision = precision_.data();
  std::fill(precision, precision + inner, 0.0);
  std::copy(h, h + taxonomy_.classes(), precision + inner);
  for (Index n = nodes - 1; n > 0; --n)
    precision[taxonomy_.parent(n)] += precision[n] / (1.0 + variances[n] * precision[n]);
  increments[0] = weights[0] = 0.0;
  for (Index n = 1; n < nodes; ++n) {
    // w_n given w_parent has the mean share * w_parent + ..., and the variance own.
    const double share = 1.0 / (1.0 + variances[n] * precision[n]);
    const double own = variances[n] * share;
    const double above = weights[taxonomy_.parent(n)];
    weights[n] = own + share * share * above;
    increments[n] = own + (1.0 - share) * (1.0 - share) * above;
  }
}

}  // namespace taxolearn
