// The alternation of Gopal and Yang 2015 (algorithm 1): leaves given their parents by dual coordinate descent (12, 13),
// then inner nodes in closed form (11), those on odd levels before those on even ones.
#include <algorithm>

#include "block_visit.hpp"
#include "sweep.hpp"

namespace taxolearn {
namespace {

constexpr int passes_per_visit = 10;

class AlternatingSweeps final : public Sweeps {
 public:
  AlternatingSweeps(const ClassBlocks& blocks, std::vector<SparseColumn> sums)
      : blocks_(blocks),
        tree_(*blocks.problem().taxonomy),
        leaf_sums_(static_cast<std::size_t>(blocks.inner())),
        factors_(static_cast<std::size_t>(blocks.inner()), 1.0) {
    leaves_.assign(sums.begin() + blocks.inner(), sums.end());
    for (Index p = 0; p < blocks.inner(); ++p) {
      // w_n of the sums: a node comes after its parent.
      SparseColumn weight = scaled(sums[static_cast<std::size_t>(p)], blocks.variance(p));
      if (p > 0) add(weights_[static_cast<std::size_t>(tree_.parent(p))], weight);
      weights_.push_back(std::move(weight));
    }
    for (Index c = 0; c < tree_.classes(); ++c) {
      add(leaves_[static_cast<std::size_t>(c)], leaf_sums_[static_cast<std::size_t>(parent_of_leaf(c))]);
    }
    for (const ClassBlock& block : blocks.blocks()) {
      std::vector<Ancestor> parents;
      for (const Ancestor& above : block.ancestors) {
        const Taxonomy::Branch& branch = tree_.branches()[static_cast<std::size_t>(above.node)];
        const Index begin = std::max<Index>(branch.begin - block.first, 0);
        const Index end = std::min<Index>(branch.middle - block.first, block.count);
        if (begin < end) parents.push_back({above.node, begin, end});
      }
      parents_.push_back(std::move(parents));
    }
  }

  SweepResult sweep(std::vector<SparseColumn>& duals, const SweepSettings& settings,
                    const Execution& execution) override {
    SweepResult out;
    settings.single ? visit_leaves<float>(duals, settings, out, execution)
                    : visit_leaves<double>(duals, settings, out, execution);
    update_inner();
    return out;
  }

 private:
  Index parent_of_leaf(Index c) const { return tree_.parent(tree_.inner() + c); }

  template <class T>
  void visit_leaves(std::vector<SparseColumn>& duals, const SweepSettings& settings, SweepResult& out,
                    const Execution& execution) {
    std::vector<VisitResult> results(parents_.size());
    parallel_for(static_cast<Index>(parents_.size()), execution, [&](Index b) {
      const ClassBlock& block = blocks_.blocks()[static_cast<std::size_t>(b)];
      VisitPlan plan{&parents_[static_cast<std::size_t>(b)], &weights_, &factors_, &leaves_, nullptr, {}};
      plan.settings.tolerance = 0.1 * settings.tolerance;
      plan.settings.max_passes = passes_per_visit;
      plan.settings.seed = settings.seed + static_cast<std::uint64_t>(block.first);
      VisitWorkspace<T> workspace;
      results[static_cast<std::size_t>(b)] = visit(blocks_, block, plan, duals, workspace, execution);
    });
    for (std::size_t b = 0; b < results.size(); ++b) {
      keep_leaves(blocks_.blocks()[b], results[b], duals, leaves_, out);
      for (std::size_t a = 0; a < results[b].changes.size(); ++a) {
        add(results[b].changes[a], leaf_sums_[static_cast<std::size_t>(parents_[b][a].node)]);
      }
    }
  }

  /// Equation (11) with variances: w_n is the mean of its neighbours, each weighted by 1 / v.
  void update_inner() {
    const Index inner = blocks_.inner();
    // What the leaves, w_c = w_n + v_c a_c, put into the sums of their parents; they stay as they are.
    std::vector<SparseColumn> from_leaves;
    std::vector<double> precision(static_cast<std::size_t>(inner));
    for (Index p = 0; p < inner; ++p) precision[static_cast<std::size_t>(p)] = 1.0 / blocks_.variance(p);
    std::vector<double> of_leaves(static_cast<std::size_t>(inner), 0.0);
    for (Index c = 0; c < tree_.classes(); ++c) {
      of_leaves[static_cast<std::size_t>(parent_of_leaf(c))] += 1.0 / blocks_.leaf_variance(c);
    }
    for (Index p = 0; p < inner; ++p) {
      const auto at = static_cast<std::size_t>(p);
      SparseColumn sum = scaled(weights_[at], of_leaves[at]);
      add(leaf_sums_[at], sum);
      from_leaves.push_back(std::move(sum));
      precision[at] += of_leaves[at];
      if (p > 0) precision[static_cast<std::size_t>(tree_.parent(p))] += 1.0 / blocks_.variance(p);
    }
    for (const Index parity : {1, 0}) {
      std::vector<SparseColumn> sums = from_leaves;
      for (Index p = 1; p < inner; ++p) {
        const auto at = static_cast<std::size_t>(p), above = static_cast<std::size_t>(tree_.parent(p));
        if (tree_.depth(p) % 2 == parity) add(scaled(weights_[above], 1.0 / blocks_.variance(p)), sums[at]);
        if (tree_.depth(p) % 2 != parity) add(scaled(weights_[at], 1.0 / blocks_.variance(p)), sums[above]);
      }
      for (Index p = 0; p < inner; ++p) {
        const auto at = static_cast<std::size_t>(p);
        if (tree_.depth(p) % 2 == parity) weights_[at] = scaled(sums[at], 1.0 / precision[at]);
      }
    }
  }

  const ClassBlocks& blocks_;
  const Taxonomy& tree_;
  std::vector<SparseColumn> weights_;    // w_n per inner node
  std::vector<SparseColumn> leaf_sums_;  // sum of a_c over the children of n that are leaves
  std::vector<SparseColumn> leaves_;     // a_l per class
  std::vector<double> factors_;
  std::vector<std::vector<Ancestor>> parents_;  // of lanes, per block
};

}  // namespace

std::unique_ptr<Sweeps> alternating_sweeps(const ClassBlocks& blocks, std::vector<SparseColumn> sums) {
  return std::make_unique<AlternatingSweeps>(blocks, std::move(sums));
}

}  // namespace taxolearn
