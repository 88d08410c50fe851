// The alternation of Gopal and Yang 2015 (algorithm 1), on trees and graphs: given its neighbours m, the weights of node n
// have the mean -sum_m Q_nm w_m / Q_nn and the variance 1 / Q_nn. So a class is a problem of its own with this mean as
// offset (12, 13), and a node without data is equal to it (11). Nodes of one colour, of which no two are neighbours, are
// worked on in parallel; those of a tree have two colours, odd and even levels.
#include <algorithm>
#include <utility>

#include "block_visit.hpp"
#include "certificate.hpp"
#include "sweep.hpp"

namespace taxolearn {
namespace {

constexpr int passes_per_visit = 10;

/// Colours of nodes, no two neighbours the same: in the order in which a walk from node to node meets them, each takes the
/// lowest that is free.
std::vector<std::vector<Index>> nodes_by_color(const NodePrecision& precision) {
  const Index nodes = precision.nodes();
  std::vector<Index> color(static_cast<std::size_t>(nodes), -1);
  std::vector<char> is_met(static_cast<std::size_t>(nodes), 0);
  std::vector<std::vector<Index>> out;
  std::vector<Index> walk;
  for (Index root = 0; root < nodes; ++root) {
    if (is_met[static_cast<std::size_t>(root)] != 0) continue;
    is_met[static_cast<std::size_t>(root)] = 1;
    walk.assign(1, root);
    for (std::size_t at = 0; at < walk.size(); ++at) {
      std::vector<char> is_taken(out.size() + 1, 0);
      precision.for_row(walk[at], [&](Index other, double) {
        const Index theirs = color[static_cast<std::size_t>(other)];
        if (theirs >= 0) is_taken[static_cast<std::size_t>(theirs)] = 1;
        if (is_met[static_cast<std::size_t>(other)] == 0) walk.push_back(other);
        is_met[static_cast<std::size_t>(other)] = 1;
      });
      const auto own = static_cast<std::size_t>(std::find(is_taken.begin(), is_taken.end(), 0) - is_taken.begin());
      color[static_cast<std::size_t>(walk[at])] = static_cast<Index>(own);
      if (own == out.size()) out.emplace_back();
      out[own].push_back(walk[at]);
    }
  }
  return out;
}

class AlternatingSweeps final : public Sweeps {
 public:
  AlternatingSweeps(const ClassBlocks& blocks, const std::vector<SparseColumn>& duals, const Execution& execution)
      : blocks_(blocks),
        precision_(blocks.problem().graph != nullptr
                       ? *blocks.problem().graph
                       : precision_of_tree(*blocks.problem().taxonomy, blocks.variances())),
        weights_(static_cast<std::size_t>(precision_.nodes())),
        duals_(transposed(duals, blocks.classes())),
        sums_(static_cast<std::size_t>(blocks.classes())) {
    std::vector<Index> class_of(weights_.size(), -1);
    for (Index c = 0; c < blocks.classes(); ++c) class_of[static_cast<std::size_t>(node_of(c))] = c;
    for (const std::vector<Index>& nodes : nodes_by_color(precision_)) {
      Color color;
      std::vector<Index> classes;
      for (const Index node : nodes) {
        const Index c = class_of[static_cast<std::size_t>(node)];
        c >= 0 ? classes.push_back(c) : color.without_data.push_back(node);
      }
      color.blocks = in_blocks(classes);
      colors_.push_back(std::move(color));
    }
    for (Index c = 0; c < blocks.classes(); ++c) variances_.push_back(1.0 / diagonal(node_of(c)));
    if (std::any_of(duals.begin(), duals.end(), [](const SparseColumn& row) { return !row.indices.empty(); })) {
      start(duals, execution);
    }
  }

  SweepResult sweep(const SweepSettings& settings, const Execution& execution) override {
    SweepResult out;
    for (const Color& color : colors_) {
      std::vector<LaneResult> found(color.blocks.size());
      parallel_for(static_cast<Index>(color.blocks.size()), execution, [&](Index b) {
        const ClassBlock& block = color.blocks[static_cast<std::size_t>(b)];
        found[static_cast<std::size_t>(b)] = settings.single ? visit_block<float>(block, settings, execution)
                                                             : visit_block<double>(block, settings, execution);
      });
      for (std::size_t b = 0; b < found.size(); ++b) {
        out.visits += static_cast<double>(found[b].visits) * static_cast<double>(color.blocks[b].size());
      }
      parallel_for(static_cast<Index>(color.without_data.size()), execution, [&](Index k) {
        const Index node = color.without_data[static_cast<std::size_t>(k)];
        weights_[static_cast<std::size_t>(node)] = mean_of_neighbours(node);
      });
    }
    return out;
  }

  std::vector<SparseColumn> duals() const override { return transposed(duals_, blocks_.rows()); }

 private:
  struct Color {
    std::vector<ClassBlock> blocks;
    std::vector<Index> without_data;
  };

  Index node_of(Index c) const { return precision_.class_nodes[static_cast<std::size_t>(c)]; }

  double diagonal(Index node) const {
    double out = 0.0;
    precision_.for_row(node, [&](Index other, double value) { out += other == node ? value : 0.0; });
    return out;
  }

  SparseColumn mean_of_neighbours(Index node) const {
    SparseColumn out;
    const double own = diagonal(node);
    precision_.for_row(node, [&](Index other, double value) {
      if (other != node) add(scaled(weights_[static_cast<std::size_t>(other)], -value / own), out);
    });
    return out;
  }

  /// At the sums that dual variables stand for, all nodes have the weights Q^-1 a: those of the joint problem.
  void start(const std::vector<SparseColumn>& duals, const Execution& execution) {
    const Certificate certificate = certify(blocks_, duals, execution);
    std::vector<double> z(static_cast<std::size_t>(blocks_.factor().parts()));
    for (Index f = 0; f < certificate.parts->features(); ++f) {
      std::fill(z.begin(), z.end(), 0.0);
      certificate.parts->for_parts(f, [&](std::int32_t k, double value) { z[static_cast<std::size_t>(k)] = value; });
      blocks_.factor().to_nodes(z.data());
      for (Index node = 0; node < precision_.nodes(); ++node) {
        const double value = z[static_cast<std::size_t>(blocks_.factor().place_of_node(node))];
        if (value == 0.0) continue;
        weights_[static_cast<std::size_t>(node)].indices.push_back(static_cast<std::int32_t>(f));
        weights_[static_cast<std::size_t>(node)].values.push_back(value);
      }
    }
    for (Index c = 0; c < blocks_.classes(); ++c) {
      SparseColumn sum = weights_[static_cast<std::size_t>(node_of(c))];
      add(scaled(mean_of_neighbours(node_of(c)), -1.0), sum);
      sums_[static_cast<std::size_t>(c)] = scaled(std::move(sum), diagonal(node_of(c)));
    }
  }

  template <class T>
  LaneResult visit_block(const ClassBlock& block, const SweepSettings& settings, const Execution& execution) {
    LaneSettings lanes;
    lanes.tolerance = 0.1 * settings.tolerance;
    lanes.max_passes = passes_per_visit;
    lanes.seed = settings.seed + static_cast<std::uint64_t>(block.front());
    BlockState state;
    for (const Index c : block) {
      state.duals.push_back(std::move(duals_[static_cast<std::size_t>(c)]));
      state.sums.push_back(std::move(sums_[static_cast<std::size_t>(c)]));
      state.offsets.push_back(mean_of_neighbours(node_of(c)));
    }
    VisitWorkspace<T> workspace;
    const LaneResult out = visit(blocks_, block, variances_, lanes, state, workspace, execution);
    for (std::size_t l = 0; l < block.size(); ++l) {
      const auto c = static_cast<std::size_t>(block[l]);
      duals_[c] = std::move(state.duals[l]);
      sums_[c] = std::move(state.sums[l]);
      SparseColumn& weights = weights_[static_cast<std::size_t>(node_of(block[l]))];
      weights = std::move(state.offsets[l]);
      add(scaled(sums_[c], variances_[c]), weights);
    }
    return out;
  }

  const ClassBlocks& blocks_;
  NodePrecision precision_;
  std::vector<SparseColumn> weights_;  // w_n per node
  std::vector<SparseColumn> duals_;    // alpha_il per class
  std::vector<SparseColumn> sums_;     // a_l per class
  std::vector<double> variances_;      // 1 / Q_nn per class
  std::vector<Color> colors_;
};

}  // namespace

std::unique_ptr<Sweeps> alternating_sweeps(const ClassBlocks& blocks, const std::vector<SparseColumn>& duals,
                                           const Execution& execution) {
  return std::make_unique<AlternatingSweeps>(blocks, duals, execution);
}

}  // namespace taxolearn
