// Predictions from the sparse weights of all nodes.
#pragma once

#include <cstdint>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"
#include "taxolearn/classes/taxonomy.hpp"
#include "taxolearn/data/input.hpp"

namespace taxolearn {

/// w_n - w_parent(n), by feature and node (d x nodes), and intercepts (nodes) in the same way.
struct NodeWeights {
  SparseView<double, std::int64_t> by_feature;
  const double* intercepts = nullptr;
  const Taxonomy* taxonomy = nullptr;  ///< null: nodes are the classes
};

/// out (n x classes) = scores w_l . x_i.
void recursive_scores(const InputView& X, const NodeWeights& weights, DenseView<double> out,
                      const Execution& execution);

/// The classes with the highest scores in every row, the best first, equal ones in order of their numbers. A row of
/// scores per thread is all that is kept of the n x classes.
void recursive_top(const InputView& X, const NodeWeights& weights, DenseView<std::int32_t> classes,
                   DenseView<double> scores, const Execution& execution);

}  // namespace taxolearn
