// Block-coordinate ascent of the whole dual.
//
// Inner nodes are eliminated: w = G a, where G is the covariance of the leaves under the tree's prior. So a block of
// classes is solved with its exact effect on all weights along its paths, and takes steps of the length that the whole
// problem allows. The alternation of the paper holds the parents still meanwhile, so that where the prior is
// strong a node with k children moves by the k-th part of its way.
#include <algorithm>

#include "block_visit.hpp"
#include "sweep.hpp"

namespace taxolearn {
namespace {

constexpr Index blocks_apart = 64;     // blocks without a tree that are worked on before answers are put away
constexpr Index rounds_at_least = 16;  // of a sweep under a tree
constexpr Index blocks_together = 16;  // of a round under a tree, at most
constexpr int passes_per_visit = 3;    // while other blocks wait
constexpr int most_passes = 1000;

class JointSweeps final : public Sweeps {
 public:
  JointSweeps(const ClassBlocks& blocks, std::vector<SparseColumn> sums) : blocks_(blocks), sums_(std::move(sums)) {
    leaves_.assign(std::make_move_iterator(sums_.begin() + blocks.inner()), std::make_move_iterator(sums_.end()));
    sums_.resize(static_cast<std::size_t>(blocks.inner()));
    for (Index p = 0; p < blocks.inner(); ++p) factors_.push_back(blocks.variance(p));
    // Blocks of a round are far apart, so that they have few nodes in common.
    const auto count = static_cast<Index>(blocks.blocks().size());
    const Index together =
        blocks.inner() == 0 ? blocks_apart : std::clamp<Index>(count / rounds_at_least, 1, blocks_together);
    const Index rounds = (count + together - 1) / together;
    rounds_.resize(static_cast<std::size_t>(rounds));
    for (Index b = 0; b < count; ++b) rounds_[static_cast<std::size_t>(b % rounds)].push_back(b);
    passes_ = blocks.inner() == 0 || count == 1 ? most_passes : passes_per_visit;
  }

  SweepResult sweep(std::vector<SparseColumn>& duals, const SweepSettings& settings,
                    const Execution& execution) override {
    SweepResult out;
    for (const std::vector<Index>& round : rounds_) {
      settings.single ? visit_round<float>(round, settings, duals, out, execution)
                      : visit_round<double>(round, settings, duals, out, execution);
    }
    return out;
  }

 private:
  /// All blocks of a round see the sums as they were before it. Where k of them share a node, each takes its variance k
  /// times: |sum of k changes|^2 <= k (sum of their squares), so the dual objective never falls.
  template <class T>
  void visit_round(const std::vector<Index>& round, const SweepSettings& settings, std::vector<SparseColumn>& duals,
                   SweepResult& out, const Execution& execution) {
    const auto block_of = [&](std::size_t k) -> const ClassBlock& {
      return blocks_.blocks()[static_cast<std::size_t>(round[k])];
    };
    std::vector<int> copies(static_cast<std::size_t>(blocks_.inner()), 0);
    for (std::size_t k = 0; k < round.size(); ++k) {
      for (const Ancestor& above : block_of(k).ancestors) ++copies[static_cast<std::size_t>(above.node)];
    }
    std::vector<VisitResult> results(round.size());
    parallel_for(static_cast<Index>(round.size()), execution, [&](Index k) {
      const ClassBlock& block = block_of(static_cast<std::size_t>(k));
      VisitPlan plan{&block.ancestors, &sums_, &factors_, &leaves_, &copies, {}};
      plan.settings.tolerance = settings.tolerance;
      plan.settings.max_passes = passes_;
      plan.settings.seed = settings.seed + static_cast<std::uint64_t>(block.first);
      VisitWorkspace<T> workspace;
      results[static_cast<std::size_t>(k)] = visit(blocks_, block, plan, duals, workspace, execution);
    });
    for (std::size_t k = 0; k < round.size(); ++k) {
      const ClassBlock& block = block_of(k);
      VisitResult& result = results[k];
      keep_leaves(block, result, duals, leaves_, out);
      for (std::size_t a = 0; a < result.changes.size(); ++a) {
        add(result.changes[a], sums_[static_cast<std::size_t>(block.ancestors[a].node)]);
      }
    }
  }

  const ClassBlocks& blocks_;
  std::vector<SparseColumn> sums_;    // A_n per inner node
  std::vector<SparseColumn> leaves_;  // a_l per class
  std::vector<double> factors_;
  std::vector<std::vector<Index>> rounds_;
  int passes_ = 1;
};

}  // namespace

std::unique_ptr<Sweeps> joint_sweeps(const ClassBlocks& blocks, std::vector<SparseColumn> sums) {
  return std::make_unique<JointSweeps>(blocks, std::move(sums));
}

}  // namespace taxolearn
