#include "taxolearn/margin/labelings.hpp"

#include <algorithm>
#include <limits>

#include "taxolearn/base/check.hpp"

namespace taxolearn {

LabelForest::LabelForest(std::vector<std::int32_t> parents) : parents_(std::move(parents)) {
  const Index k = nodes();
  require(k >= 1, "the forest has no nodes, expected at least one");
  while (tops_ < k && parent(tops_) == -1) ++tops_;
  omega_.assign(static_cast<std::size_t>(components()), 0.25);
  for (Index j = 0; j < k; ++j) {
    require(j < tops_ || (parent(j) >= 0 && parent(j) < j), "node ", j, " has the parent ", parent(j),
            ", expected one before it, or -1 for the first nodes only");
    if (j < tops_) {
      omega_[static_cast<std::size_t>(j)] += 0.25;
    } else {
      omega_[static_cast<std::size_t>(parent(j))] += 0.25;
    }
  }
}

void LabelForest::complete(std::int8_t* signs) const {
  for (Index j = tops_; j < nodes(); ++j) signs[pair(j)] = static_cast<std::int8_t>(signs[parent(j)] * signs[j]);
}

namespace {

/// Largest sums below a node for its two labels, and which labels its own parent's two lead to. Label 0 is -1.
struct NodeTable {
  double any[2] = {0.0, 0.0};
  double wrong[2] = {0.0, 0.0};  ///< zero-one loss: of labelings that differ from the truth somewhere below or here
  std::int8_t any_choice[2] = {0, 0};
  std::int8_t wrong_choice[2] = {0, 0};
  double least_loss[2] = {0.0, 0.0};  ///< by how much `wrong` of the children falls short of `any`, at best
  std::int32_t wrong_child[2] = {-1, -1};
};

constexpr double none = -std::numeric_limits<double>::infinity();

class Labeling {
 public:
  Labeling(const LabelForest& forest, const LossOfLabelings& loss, const double* g, const std::int8_t* truth)
      : forest_(forest), loss_(loss), g_(g), truth_(truth), tables_(static_cast<std::size_t>(forest.nodes())) {}

  double find(std::int8_t* signs) {
    for (Index j = forest_.nodes(); j-- > 0;) choose(j);
    return loss_.loss == MarginLoss::zero_one ? write_wrong(signs) : write_any(signs);
  }

 private:
  NodeTable& at(Index j) { return tables_[static_cast<std::size_t>(j)]; }
  int right(Index j) const { return truth_[j] > 0 ? 1 : 0; }

  /// Loss of label b of node j if its parent's label is right, or not.
  double loss_of(Index j, int b, bool parent_right) const {
    if (b == right(j) || loss_.loss == MarginLoss::zero_one) return 0.0;
    if (loss_.loss == MarginLoss::hierarchical) return parent_right ? loss_.scale(j) : 0.0;
    return 1.0;
  }

  /// Takes the sums of node j, whose children are done, to its parent; a top node's only label of the parent is 1.
  void choose(Index j) {
    NodeTable& table = at(j);
    const bool top = j < forest_.tops();
    const bool counts = loss_.loss == MarginLoss::zero_one;
    double own[2] = {table.any[0] - g_[j], table.any[1] + g_[j]};
    double wrong[2] = {own[0], own[1]};
    if (counts) wrong[right(j)] = table.wrong_child[right(j)] < 0 ? none : own[right(j)] + table.least_loss[right(j)];
    for (int a = top ? 1 : 0; a < 2; ++a) {
      const double pair = top ? 0.0 : (a == 1 ? 1.0 : -1.0) * g_[forest_.pair(j)];
      const bool parent_right = top || a == right(forest_.parent(j));
      double best = none, best_wrong = none;
      for (const int b : {right(j), 1 - right(j)}) {
        const double edge = (b == 1 ? pair : -pair) + loss_of(j, b, parent_right);
        if (own[b] + edge > best) best = own[b] + edge, table.any_choice[a] = static_cast<std::int8_t>(b);
        if (counts && wrong[b] + edge > best_wrong) {
          best_wrong = wrong[b] + edge;
          table.wrong_choice[a] = static_cast<std::int8_t>(b);
        }
      }
      add(top ? root_ : at(forest_.parent(j)), a, j, best, best_wrong);
    }
  }

  static void add(NodeTable& parent, int a, Index j, double any, double wrong) {
    parent.any[a] += any;
    if (wrong > none && (parent.wrong_child[a] < 0 || wrong - any >= parent.least_loss[a])) {
      parent.least_loss[a] = wrong - any;
      parent.wrong_child[a] = static_cast<std::int32_t>(j);
    }
  }

  double write_any(std::int8_t* signs) {
    double loss = 0.0;
    for (Index j = 0; j < forest_.nodes(); ++j) {
      const bool top = j < forest_.tops();
      const int a = top || signs[forest_.parent(j)] > 0 ? 1 : 0;
      const int b = at(j).any_choice[a];
      loss += loss_of(j, b, top || a == right(forest_.parent(j)));
      signs[j] = b == 1 ? 1 : -1;
    }
    forest_.complete(signs);
    return loss;
  }

  /// The best labeling that differs from the truth if it beats the truth with a loss of 1.
  double write_wrong(std::int8_t* signs) {
    double own = 0.0;
    for (Index r = 0; r < forest_.components(); ++r) own += g_[r] * truth_[r];
    if (!(root_.any[1] + root_.least_loss[1] + 1.0 > own)) {
      std::copy_n(truth_, forest_.components(), signs);
      return 0.0;
    }
    std::int32_t must = root_.wrong_child[1];  // what lies below this node, or itself, differs from the truth
    for (Index j = 0; j < forest_.nodes(); ++j) {
      const int a = j < forest_.tops() || signs[forest_.parent(j)] > 0 ? 1 : 0;
      const int b = j == must ? at(j).wrong_choice[a] : at(j).any_choice[a];
      if (j == must) must = b == right(j) ? at(j).wrong_child[b] : -1;
      signs[j] = b == 1 ? 1 : -1;
    }
    forest_.complete(signs);
    return 1.0;
  }

  const LabelForest& forest_;
  const LossOfLabelings& loss_;
  const double* g_;
  const std::int8_t* truth_;
  std::vector<NodeTable> tables_;
  NodeTable root_;
};

}  // namespace

double best_labeling(const LabelForest& forest, const LossOfLabelings& loss, const double* gradient,
                     const std::int8_t* truth, std::int8_t* signs) {
  return Labeling(forest, loss, gradient, truth).find(signs);
}

void max_marginals(const LabelForest& forest, DenseView<const double> gradients, DenseView<double> out,
                   const Execution& execution) {
  const Index k = forest.nodes();
  require(gradients.cols == forest.components(), "scores have ", gradients.cols, " columns, expected ",
          forest.components());
  require_shape("out", out, gradients.rows, k);
  const Blocks blocks(gradients.rows, 64);
  parallel_for(blocks.number(), execution, [&](Index block) {
    // Best sums below and with a node that is there, or with it and all below it missing.
    std::vector<double> on(static_cast<std::size_t>(k)), off(on);
    for (Index i = blocks.first(block); i < blocks.first(block) + blocks.length(block); ++i) {
      const double* const g = gradients.row(i);
      for (Index j = 0; j < k; ++j) on[static_cast<std::size_t>(j)] = g[j], off[static_cast<std::size_t>(j)] = -g[j];
      // A child's part of its parent's sums, for a parent that is there: with the child, or without.
      const auto with = [&](std::size_t j) { return on[j] + g[forest.pair(static_cast<Index>(j))]; };
      const auto without = [&](std::size_t j) { return off[j] - g[forest.pair(static_cast<Index>(j))]; };
      const auto missing = [&](std::size_t j) { return off[j] + g[forest.pair(static_cast<Index>(j))]; };
      for (Index j = k; j-- > forest.tops();) {
        const auto child = static_cast<std::size_t>(j);
        const auto parent = static_cast<std::size_t>(forest.parent(j));
        on[parent] += std::max(with(child), without(child));
        off[parent] += missing(child);
      }
      for (Index j = 0; j < k; ++j) {
        const auto node = static_cast<std::size_t>(j);
        if (j < forest.tops()) {
          out.row(i)[j] = on[node] - off[node];
          continue;
        }
        // What the best unions with the parent have before those without it, outside of this node's subtree.
        const double rest = out.row(i)[forest.parent(j)] - std::max(with(node), without(node)) + missing(node);
        // With the node its parent is there; without it the parent may be there or not.
        out.row(i)[j] = rest + with(node) - std::max(rest + without(node), missing(node));
      }
    }
  });
}

}  // namespace taxolearn
