#include "taxolearn/classes/decision.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "taxolearn/base/check.hpp"

namespace taxolearn {
namespace {

constexpr Index rows_per_block = 16;

using Choice = std::pair<Index, double>;  // node and its expected loss

/// body(probabilities of all nodes) for each row, in parallel; writes the choices it returns.
template <class Body>
void for_rows(const Taxonomy& taxonomy, const ClassProbabilities& probabilities, const Decisions& out,
              const Execution& execution, const Body& body) {
  require_shape("probabilities", probabilities.values, probabilities.values.rows, taxonomy.classes());
  const Blocks blocks(probabilities.values.rows, rows_per_block);
  parallel_for(blocks.number(), execution, [&](Index block) {
    thread_local Buffer<double> nodes;
    nodes.resize(static_cast<std::size_t>(taxonomy.nodes()));
    double* const leaves = nodes.data() + taxonomy.inner();
    for (Index i = blocks.first(block); i < blocks.first(block) + blocks.length(block); ++i) {
      const double* const from = probabilities.values.row(i);
      for (Index c = 0; c < taxonomy.classes(); ++c)
        leaves[c] = from[probabilities.columns == nullptr ? c : probabilities.columns[c]];
      taxonomy.add_up(leaves, nodes.data());
      const Choice choice = body(nodes.data());
      out.node[i] = choice.first;
      if (out.expected_loss != nullptr) out.expected_loss[i] = choice.second;
    }
  });
}

/// The node of least expected loss(p) + costs[p].
template <class Loss>
Choice least(const Taxonomy& taxonomy, const double* costs, const Loss& loss) {
  Choice best(-1, std::numeric_limits<double>::infinity());
  for (Index p = costs == nullptr ? taxonomy.inner() : 0; p < taxonomy.nodes(); ++p) {
    const double value = loss(p) + (costs == nullptr ? 0.0 : costs[p]);
    if (value < best.second) best = {p, value};
  }
  return best;
}

Choice zero_one(const Taxonomy& taxonomy, const double* costs, const double* probability) {
  // Compared as -P, because 1 - P loses the differences of small probabilities.
  Choice best = least(taxonomy, costs, [&](Index p) { return -probability[p]; });
  best.second += 1.0;
  return best;
}

Choice least_taxo(const Taxonomy& taxonomy, const double* costs, const double* probability) {
  // E half the path length = 1/2 depth(q) + 1/2 E depth(c) - E depth of the lowest common ancestor, and the last one is
  // the sum of the probabilities along the path of q. It is accumulated downwards.
  thread_local Buffer<double> along;
  along.resize(static_cast<std::size_t>(taxonomy.inner()));
  along[0] = 0.0;
  double mean_depth = 0.0;
  for (Index p = 1; p < taxonomy.inner(); ++p) {
    along[static_cast<std::size_t>(p)] = along[static_cast<std::size_t>(taxonomy.parent(p))] + probability[p];
    mean_depth += probability[p];
  }
  for (Index p = taxonomy.inner(); p < taxonomy.nodes(); ++p) mean_depth += probability[p];
  return least(taxonomy, costs, [&](Index p) {
    const double common = p < taxonomy.inner() ? along[static_cast<std::size_t>(p)]
                                               : along[static_cast<std::size_t>(taxonomy.parent(p))] + probability[p];
    return 0.5 * (static_cast<double>(taxonomy.depth(p)) + mean_depth) - common;
  });
}

/// The node with the largest mass of leaf children, and of these the most probable (Seeger 2008, footnote 11).
Choice best_parent(const Taxonomy& taxonomy, const double* probability) {
  const double* const leaves = probability + taxonomy.inner();
  double mass = -1.0;
  const Taxonomy::Branch* best = nullptr;
  for (const Taxonomy::Branch& branch : taxonomy.branches()) {
    double sum = 0.0;
    for (std::int32_t c = branch.begin; c < branch.middle; ++c) sum += leaves[c];
    if (branch.middle > branch.begin && sum > mass) {
      mass = sum;
      best = &branch;
    }
  }
  if (best == nullptr) return {-1, 0.0};  // only NaN gets here
  const double* const winner = std::max_element(leaves + best->begin, leaves + best->middle);
  return {taxonomy.inner() + (winner - leaves), 1.0 - mass};
}

}  // namespace

void decide(const Taxonomy& taxonomy, const ClassProbabilities& probabilities, TreeLoss loss, const double* costs,
            const Decisions& out, const Execution& execution) {
  require(loss != TreeLoss::parent || costs == nullptr,
          "loss \"parent\" is about leaves: it takes no costs of stopping");
  require(
      costs == nullptr || std::any_of(costs, costs + taxonomy.nodes(), [](double cost) { return std::isfinite(cost); }),
      "costs rule out every node");
  for_rows(taxonomy, probabilities, out, execution, [&](const double* probability) {
    switch (loss) {
      case TreeLoss::zero_one:
        return zero_one(taxonomy, costs, probability);
      case TreeLoss::taxo:
        return least_taxo(taxonomy, costs, probability);
      case TreeLoss::parent:
        break;
    }
    return best_parent(taxonomy, probability);
  });
}

void decide_confident(const Taxonomy& taxonomy, const ClassProbabilities& probabilities, double confidence,
                      const Decisions& out, const Execution& execution) {
  require(confidence > 0.0 && confidence <= 1.0, "confidence is ", confidence, ", expected a number in (0, 1]");
  for_rows(taxonomy, probabilities, out, execution, [&](const double* probability) {
    Index best = 0;
    for (Index p = 1; p < taxonomy.nodes(); ++p) {
      if (!(probability[p] >= confidence)) continue;
      const Index deeper = taxonomy.depth(p) - taxonomy.depth(best);
      if (deeper > 0 || (deeper == 0 && probability[p] > probability[best])) best = p;
    }
    return Choice(best, 1.0 - probability[best]);
  });
}

}  // namespace taxolearn
