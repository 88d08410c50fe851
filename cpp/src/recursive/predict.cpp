#include "taxolearn/recursive/predict.hpp"

#include <algorithm>
#include <vector>

#include "row_entries.hpp"
#include "taxolearn/base/check.hpp"

namespace taxolearn {
namespace {

constexpr Index rows_per_block = 64;

Index classes_of(const NodeWeights& weights) {
  return weights.taxonomy == nullptr ? weights.by_feature.cols : weights.taxonomy->classes();
}

/// Scores of all nodes: features are looked up one after the other, each with the nodes that have a weight for it; then
/// every node adds that of its parent, which comes before it.
void score_row(const InputView& X, Index i, const NodeWeights& weights, double* scores) {
  const SparseView<double, std::int64_t>& W = weights.by_feature;
  std::copy_n(weights.intercepts, W.cols, scores);
  for_entries(X, i, [&](Index feature, double value) {
    for (std::int64_t k = W.offsets[feature]; k < W.offsets[feature + 1]; ++k)
      scores[W.columns[k]] += value * W.values[k];
  });
  if (weights.taxonomy == nullptr) return;
  for (Index node = 1; node < W.cols; ++node) scores[node] += scores[weights.taxonomy->parent(node)];
}

/// Calls take(row, scores of the classes).
template <class Take>
void score_rows(const InputView& X, const NodeWeights& weights, const Take& take, const Execution& execution) {
  const Index nodes = weights.by_feature.cols, classes = classes_of(weights);
  require(input_blocks(X) == nullptr, "X has blocks, expected one matrix: put them side by side first");
  require(input_features(X) == weights.by_feature.rows, "X has ", input_features(X), " features, expected ",
          weights.by_feature.rows);
  require(weights.taxonomy == nullptr || weights.taxonomy->nodes() == nodes, "there are weights of ", nodes,
          " nodes, expected ", weights.taxonomy == nullptr ? nodes : weights.taxonomy->nodes());
  const Blocks blocks(input_rows(X), rows_per_block);
  parallel_for(blocks.number(), execution, [&](Index block) {
    std::vector<double> scores(static_cast<std::size_t>(nodes));
    for (Index k = 0; k < blocks.length(block); ++k) {
      const Index i = blocks.first(block) + k;
      score_row(X, i, weights, scores.data());
      take(i, scores.data() + nodes - classes);
    }
  });
}

}  // namespace

void recursive_scores(const InputView& X, const NodeWeights& weights, DenseView<double> out,
                      const Execution& execution) {
  require_shape("out", out, input_rows(X), classes_of(weights));
  score_rows(X, weights, [&](Index i, const double* scores) { std::copy_n(scores, out.cols, out.row(i)); }, execution);
}

void recursive_top(const InputView& X, const NodeWeights& weights, DenseView<std::int32_t> classes,
                   DenseView<double> scores, const Execution& execution) {
  const Index count = classes_of(weights), k = classes.cols;
  require(k >= 1 && k <= count, "k is ", k, ", expected 1 to ", count);
  require_shape("classes", classes, input_rows(X), k);
  require_shape("scores", scores, input_rows(X), k);
  score_rows(
      X, weights,
      [&](Index i, const double* all) {
        // The best so far, in order; of equal ones the first stays ahead.
        std::int32_t* const best = classes.row(i);
        double* const own = scores.row(i);
        Index found = 0;
        for (Index c = 0; c < count; ++c) {
          if (found == k && !(all[c] > own[k - 1])) continue;
          Index at = found < k ? found++ : k - 1;
          for (; at > 0 && all[c] > own[at - 1]; --at) {
            own[at] = own[at - 1];
            best[at] = best[at - 1];
          }
          own[at] = all[c];
          best[at] = static_cast<std::int32_t>(c);
        }
      },
      execution);
}

}  // namespace taxolearn
