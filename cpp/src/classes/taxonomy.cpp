#include "taxolearn/classes/taxonomy.hpp"

#include <limits>

#include "taxolearn/base/check.hpp"

namespace taxolearn {

Taxonomy::Taxonomy(const std::vector<Index>& parents) : parents_(parents), depths_(parents.size(), 0) {
  const Index nodes = static_cast<Index>(parents.size());
  require(nodes >= 2, "a taxonomy needs a root and at least one leaf, got ", nodes, " nodes");
  require(nodes <= std::numeric_limits<std::int32_t>::max(), "a taxonomy of ", nodes, " nodes is too large");
  require(parents[0] == -1, "parents[0] is ", parents[0], ", expected -1 for the root");
  for (Index p = 1; p < nodes; ++p) {
    const Index parent = parents[static_cast<std::size_t>(p)];
    require(parent >= 0 && parent < p, "parents[", p, "] is ", parent, ", expected a node before ", p);
    depths_[static_cast<std::size_t>(p)] = depths_[static_cast<std::size_t>(parent)] + 1;
  }
  const Index inner = *std::max_element(parents.begin(), parents.end()) + 1;
  branches_.resize(static_cast<std::size_t>(inner));

  // Children of every inner node, leaves and others apart, as counts; then one preorder walk that must meet all nodes
  // in the order of their numbers.
  std::vector<Index> leaf_children(static_cast<std::size_t>(inner), 0);
  for (Index p = inner; p < nodes; ++p) ++leaf_children[static_cast<std::size_t>(parents[static_cast<std::size_t>(p)])];
  Index next_leaf = 0;
  for (Index p = 0; p < inner; ++p) {
    Branch& branch = branches_[static_cast<std::size_t>(p)];
    const Index own = leaf_children[static_cast<std::size_t>(p)];
    branch.parent = static_cast<std::int32_t>(parents[static_cast<std::size_t>(p)]);
    branch.begin = static_cast<std::int32_t>(next_leaf);
    branch.middle = static_cast<std::int32_t>(next_leaf + own);
    branch.end = branch.middle;
    for (Index c = next_leaf; c < next_leaf + own; ++c) {
      const Index parent = parents[static_cast<std::size_t>(inner + c)];
      require(parent == p, "node ", inner + c, " is a leaf below ", parent, ", expected below ", p,
              ": leaves must come in depth-first order");
    }
    next_leaf += own;
  }
  Index current = 0;
  for (Index p = 1; p < inner; ++p) {
    const Index parent = parents[static_cast<std::size_t>(p)];
    while (current != parent && current > 0) current = parents[static_cast<std::size_t>(current)];
    require(current == parent, "node ", p, " is below ", parent, ": inner nodes must come in depth-first order");
    current = p;
  }
  for (Index p = inner - 1; p >= 0; --p) {
    Branch& branch = branches_[static_cast<std::size_t>(p)];
    require(branch.end > branch.begin, "node ", p, " has no leaf below it");
    if (p > 0) {
      Branch& above = branches_[static_cast<std::size_t>(branch.parent)];
      above.end = std::max(above.end, branch.end);
    }
  }
}

void node_probabilities(const Taxonomy& taxonomy, DenseView<const double> probabilities, const Index* columns,
                        DenseView<double> out, const Execution& execution) {
  require_shape("probabilities", probabilities, probabilities.rows, taxonomy.classes());
  require_shape("out", out, probabilities.rows, taxonomy.nodes());
  parallel_for(out.rows, execution, [&](Index i) {
    double* const leaves = out.row(i) + taxonomy.inner();
    const double* const from = probabilities.row(i);
    for (Index c = 0; c < taxonomy.classes(); ++c) leaves[c] = from[columns == nullptr ? c : columns[c]];
    taxonomy.add_up(leaves, out.row(i));
  });
}

}  // namespace taxolearn
