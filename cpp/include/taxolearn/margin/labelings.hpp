// Best labelings of a forest by dynamic programming (Rousu et al. 2006, 3.4), linear in its nodes.
//
// Gradients g have one number per component: the score of a labeling is g . (its components).
#pragma once

#include <cstdint>
#include <vector>

#include "taxolearn/base/parallel.hpp"
#include "taxolearn/margin/problem.hpp"

namespace taxolearn {

/// What a labeling loses against a truth.
struct LossOfLabelings {
  MarginLoss loss = MarginLoss::hamming;
  std::vector<double> scales;  ///< per node; empty: all 1

  double scale(Index node) const { return scales.empty() ? 1.0 : scales[static_cast<std::size_t>(node)]; }
};

/// Writes the components of the labeling with the largest loss + score, of all 2^k, and returns its loss. Of equal labels
/// of a node it takes that of the truth.
double best_labeling(const LabelForest& forest, const LossOfLabelings& loss, const double* gradient,
                     const std::int8_t* truth, std::int8_t* signs);

/// out (rows x nodes): largest score of a union of partial paths that has the node, minus the largest of one that has
/// not. The nodes where this is above zero are the best union of all.
void max_marginals(const LabelForest& forest, DenseView<const double> gradients, DenseView<double> out,
                   const Execution& execution);

}  // namespace taxolearn
