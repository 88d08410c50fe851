// Decisions: for each row of probabilities the node whose expected loss is least, O(nodes) per row.
#pragma once

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"
#include "taxolearn/classes/taxonomy.hpp"

namespace taxolearn {

/// The loss of answer q (a node) when the truth is leaf c.
enum class TreeLoss {
  zero_one,  ///< 0 if q is c or above it, else 1
  taxo,      ///< half the length of the path between q and c
  parent,    ///< 0 if q and c have the same parent, else 1; leaves only
};

/// Probabilities of the classes, row by row: class c is column columns[c], or column c if columns is null.
struct ClassProbabilities {
  DenseView<const double> values;
  const Index* columns = nullptr;
};

/// What was decided, row by row.
struct Decisions {
  Index* node = nullptr;            ///< number of the node
  double* expected_loss = nullptr;  ///< may be null
};

/// The answers of least expected loss. Null costs: answers are leaves. Else any node p may be the answer at the price
/// of costs[p] on top of its loss; infinity rules a node out.
void decide(const Taxonomy& taxonomy, const ClassProbabilities& probabilities, TreeLoss loss, const double* costs,
            const Decisions& out, const Execution& execution);

/// The deepest node that has at least this probability; of several at the same depth the most probable one. The
/// expected loss is 1 minus its probability.
void decide_confident(const Taxonomy& taxonomy, const ClassProbabilities& probabilities, double confidence,
                      const Decisions& out, const Execution& execution);

}  // namespace taxolearn
