// The tree of classes, and sweeps over it.
//
// Nodes 0 .. nodes - 1 are in canonical order: the root is 0; inner nodes come first, in depth-first preorder; then the
// leaves, in the order in which the same walk meets them if at every node it visits the children that are leaves
// before the others. Leaf c (node inner + c) is class c. So the leaves below any node are consecutive, and so are the
// leaf children of a node: sums over classes run on contiguous memory, and a sweep over the tree is one pass over the
// inner nodes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"

namespace taxolearn {

class Taxonomy {
 public:
  /// parents[p] for every node, -1 for the root. Throws InvalidArgument unless the order is canonical.
  explicit Taxonomy(const std::vector<Index>& parents);

  Index nodes() const { return static_cast<Index>(parents_.size()); }
  Index inner() const { return static_cast<Index>(branches_.size()); }
  Index classes() const { return nodes() - inner(); }
  Index parent(Index node) const { return parents_[static_cast<std::size_t>(node)]; }
  Index depth(Index node) const { return depths_[static_cast<std::size_t>(node)]; }

  /// An inner node. Its leaf children are the classes begin .. middle, all leaves below it begin .. end.
  struct Branch {
    std::int32_t parent;
    std::int32_t begin;
    std::int32_t middle;
    std::int32_t end;
  };
  const std::vector<Branch>& branches() const { return branches_; }

  /// sums[p] = sum of the leaves below inner node p: upwards, O(nodes).
  template <class T>
  void add_up(const T* leaves, T* sums) const {
    std::fill(sums, sums + inner(), T(0));
    for (Index p = inner() - 1; p >= 0; --p) {
      const Branch& branch = branches_[static_cast<std::size_t>(p)];
      T sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int32_t c = branch.begin; c < branch.middle; ++c) sum += leaves[c];
      sums[p] += sum;
      if (p > 0) sums[branch.parent] += sums[p];
    }
  }

 private:
  std::vector<Index> parents_;
  std::vector<Index> depths_;
  std::vector<Branch> branches_;
};

/// out (rows x nodes) = probability of every node, from those of the classes (rows x classes). Class c is column
/// columns[c] of the probabilities; columns may be null.
void node_probabilities(const Taxonomy& taxonomy, DenseView<const double> probabilities, const Index* columns,
                        DenseView<double> out, const Execution& execution);

}  // namespace taxolearn
