#include "tree_gaussian.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/base/product.hpp"
#include "taxolearn/base/triangular.hpp"
#include "taxolearn/base/vector.hpp"

namespace taxolearn {

TreeGaussian::TreeGaussian(const Taxonomy& taxonomy, Index features)
    : taxonomy_(taxonomy),
      d_(features),
      given_parent_(taxonomy.nodes() * features, features),
      covariances_(taxonomy.nodes() * features, features),
      sums_(taxonomy.nodes(), features),
      means_(taxonomy.nodes(), features),
      squares_(taxonomy.nodes(), features),
      spreads_(taxonomy.nodes(), features),
      log_determinants_(static_cast<std::size_t>(taxonomy.nodes())) {}

/// (A + D)^-1 in place of A, and its determinant.
bool TreeGaussian::invert(Index node, DenseView<const double> D) {
  const DenseView<double> K = at(given_parent_, node);
  for (Index j = 0; j < d_; ++j) K.row(j)[j] += D.row(node)[j];
  if (!factor_cholesky(K)) return false;
  double sum = 0.0;
  for (Index j = 0; j < d_; ++j) sum -= 2.0 * std::log(K.row(j)[j]);
  log_determinants_[static_cast<std::size_t>(node)] = sum;
  Matrix<double> inverse(d_, d_);
  for (Index j = 0; j < d_; ++j) inverse.row(j)[j] = 1.0;
  solve_lower(K, inverse.view());
  set_product(Product::AtB, inverse.view(), inverse.view(), K);
  return std::isfinite(sum);
}

/// What a node says about its parent: precision D - D K^-1 D and sum D K^-1 eta.
void TreeGaussian::add_message(Index node, DenseView<const double> D) {
  const DenseView<double> inverse = at(given_parent_, node), to = at(given_parent_, taxonomy_.parent(node));
  const double* const own = D.row(node);
  double* const sum = sums_.row(taxonomy_.parent(node));
  for (Index j = 0; j < d_; ++j) {
    for (Index k = 0; k < d_; ++k) to.row(j)[k] -= own[j] * inverse.row(j)[k] * own[k];
    to.row(j)[j] += own[j];
    sum[j] += own[j] * dot_block(inverse.row(j), sums_.row(node), d_);
  }
}

void TreeGaussian::take_down(Index node, DenseView<const double> D) {
  const Index parent = taxonomy_.parent(node);
  const DenseView<double> inverse = at(given_parent_, node), out = at(covariances_, node);
  const double *const own = D.row(node), *const above = means_.row(parent);
  std::vector<double> sum(static_cast<std::size_t>(d_));
  for (Index j = 0; j < d_; ++j) sum[static_cast<std::size_t>(j)] = sums_.row(node)[j] + own[j] * above[j];
  for (Index j = 0; j < d_; ++j) {
    means_.row(node)[j] = dot_block(inverse.row(j), sum.data(), d_);
    squares_.row(node)[j] = std::pow(means_.row(node)[j] - above[j], 2);
    spreads_.row(node)[j] = inverse.row(j)[j];
  }
  copy(DenseView<const double>(inverse), out);
  if (parent == 0) return;  // it is known to be zero
  Matrix<double> gain(d_, d_), image(d_, d_);
  const DenseView<double> P = at(covariances_, parent);
  for (Index j = 0; j < d_; ++j) {
    for (Index k = 0; k < d_; ++k) gain.row(j)[k] = inverse.row(j)[k] * own[k];
  }
  set_product(Product::AB, gain.view(), P, image.view());
  add_product(Product::ABt, image.view(), gain.view(), out);
  // diag((G - I) P (G - I)^T) = diag(G P G^T) - 2 diag(G P) + diag(P)
  for (Index j = 0; j < d_; ++j) spreads_.row(node)[j] = out.row(j)[j] - 2.0 * image.row(j)[j] + P.row(j)[j];
}

void TreeGaussian::solve(DenseView<const double> D, const Execution& execution) {
  const Index inner = taxonomy_.inner(), nodes = taxonomy_.nodes();
  for (Index n = 0; n < inner; ++n) {
    clear(at(given_parent_, n));
    std::fill(sums_.row(n), sums_.row(n) + d_, 0.0);
  }
  std::atomic<bool> fine{true};
  parallel_for(taxonomy_.classes(), execution, [&](Index c) {
    if (!invert(inner + c, D)) fine = false;
  });
  for (Index n = nodes - 1; n > 0; --n) {
    if (n < inner && !invert(n, D)) fine = false;
    if (taxonomy_.parent(n) > 0) add_message(n, D);
  }
  require(fine, "precisions of weights leave the range of double precision: scale the features");
  for (Index n = 1; n < inner; ++n) take_down(n, D);
  parallel_for(taxonomy_.classes(), execution, [&](Index c) { take_down(inner + c, D); });
  log_determinant_ = std::accumulate(log_determinants_.begin() + 1, log_determinants_.end(), 0.0);
}

}  // namespace taxolearn
