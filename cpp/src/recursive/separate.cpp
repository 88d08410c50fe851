// Classes that stand alone: block after block, until each has converged.
#include <algorithm>

#include "block_visit.hpp"
#include "certificate.hpp"
#include "sweep.hpp"

namespace taxolearn {
namespace {

constexpr Index blocks_per_round = 64;  // whose answers wait for being put away
constexpr int most_passes = 1000;

class SeparateSweeps final : public Sweeps {
 public:
  SeparateSweeps(const ClassBlocks& blocks, const std::vector<SparseColumn>& duals, const Execution& execution)
      : blocks_(blocks), duals_(transposed(duals, blocks.classes())) {
    std::vector<Index> classes;
    for (Index c = 0; c < blocks.classes(); ++c) classes.push_back(c);
    parts_ = in_blocks(classes);
    sums_.resize(duals_.size());
    if (std::all_of(duals_.begin(), duals_.end(), [](const SparseColumn& one) { return one.indices.empty(); })) return;
    sums_ = weights_of(blocks, *certify(blocks, duals, execution).parts);
    for (std::size_t c = 0; c < sums_.size(); ++c) sums_[c] = scaled(std::move(sums_[c]), 1.0 / blocks.variances()[c]);
  }

  SweepResult sweep(const SweepSettings& settings, const Execution& execution) override {
    SweepResult out;
    const auto count = static_cast<Index>(parts_.size());
    for (Index first = 0; first < count; first += blocks_per_round) {
      const Index round = std::min(blocks_per_round, count - first);
      std::vector<LaneResult> found(static_cast<std::size_t>(round));
      parallel_for(round, execution, [&](Index b) {
        const ClassBlock& block = parts_[static_cast<std::size_t>(first + b)];
        found[static_cast<std::size_t>(b)] = settings.single ? visit_block<float>(block, settings, execution)
                                                             : visit_block<double>(block, settings, execution);
      });
      for (Index b = 0; b < round; ++b) {
        const LaneResult& one = found[static_cast<std::size_t>(b)];
        out.gap += one.gap;
        out.objective += one.objective;
        out.visits +=
            static_cast<double>(one.visits) * static_cast<double>(parts_[static_cast<std::size_t>(first + b)].size());
      }
    }
    return out;
  }

  std::vector<SparseColumn> duals() const override { return transposed(duals_, blocks_.rows()); }

 private:
  template <class T>
  LaneResult visit_block(const ClassBlock& block, const SweepSettings& settings, const Execution& execution) {
    LaneSettings lanes;
    lanes.tolerance = settings.tolerance;
    lanes.max_passes = most_passes;
    lanes.seed = settings.seed + static_cast<std::uint64_t>(block.front());
    BlockState state;
    for (const Index c : block) {
      state.duals.push_back(std::move(duals_[static_cast<std::size_t>(c)]));
      state.sums.push_back(std::move(sums_[static_cast<std::size_t>(c)]));
    }
    VisitWorkspace<T> workspace;
    const LaneResult out = visit(blocks_, block, blocks_.variances(), lanes, state, workspace, execution);
    for (std::size_t l = 0; l < block.size(); ++l) {
      duals_[static_cast<std::size_t>(block[l])] = std::move(state.duals[l]);
      sums_[static_cast<std::size_t>(block[l])] = std::move(state.sums[l]);
    }
    return out;
  }

  const ClassBlocks& blocks_;
  std::vector<SparseColumn> duals_;  // alpha_il per class
  std::vector<SparseColumn> sums_;   // a_l per class
  std::vector<ClassBlock> parts_;
};

}  // namespace

std::unique_ptr<Sweeps> separate_sweeps(const ClassBlocks& blocks, const std::vector<SparseColumn>& duals,
                                        const Execution& execution) {
  return std::make_unique<SeparateSweeps>(blocks, duals, execution);
}

}  // namespace taxolearn
