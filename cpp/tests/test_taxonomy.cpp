#include <doctest/doctest.h>

#include "taxolearn/classes/taxonomy.hpp"
#include "trees.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

TEST_CASE("random trees: counts, depths, ranges of leaves, sums") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Index nodes = 2 + static_cast<Index>(seed) * 3;
    const Taxonomy taxonomy(random_parents(nodes, 1 + static_cast<Index>(seed % 9) * 4, seed));
    CAPTURE(seed);
    REQUIRE(taxonomy.nodes() == nodes);
    REQUIRE(taxonomy.classes() + taxonomy.inner() == nodes);
    const MatrixXd Phi = paths(taxonomy);
    for (Index p = 0; p < nodes; ++p) {
      Index depth = 0;
      for (Index above = p; above > 0; above = taxonomy.parent(above)) ++depth;
      CHECK(taxonomy.depth(p) == depth);
    }
    for (Index p = 0; p < taxonomy.inner(); ++p) {
      const Taxonomy::Branch& branch = taxonomy.branches()[p];
      for (Index c = 0; c < taxonomy.classes(); ++c) {
        CHECK((Phi(c, p) == 1.0) == (c >= branch.begin && c < branch.end));
        CHECK((taxonomy.parent(taxonomy.inner() + c) == p) == (c >= branch.begin && c < branch.middle));
      }
    }
    const MatrixXd S = Random(seed).matrix(4, taxonomy.classes());
    const MatrixXd expected = S * Phi;
    const Matrix<double> rows = as_matrix(S);
    std::vector<double> sums(static_cast<std::size_t>(taxonomy.inner()));
    for (Index i = 0; i < 4; ++i) {
      taxonomy.add_up(rows.row(i), sums.data());
      const Eigen::Map<Eigen::RowVectorXd> found(sums.data(), taxonomy.inner());
      CHECK(relative_error(found, expected.row(i).head(taxonomy.inner())) < 1e-14);
    }
    // Probabilities in another order of columns.
    std::vector<Index> columns(static_cast<std::size_t>(taxonomy.classes()));
    std::iota(columns.begin(), columns.end(), 0);
    std::reverse(columns.begin(), columns.end());
    const Matrix<double> reversed = as_matrix(S.rowwise().reverse());
    Matrix<double> out(4, nodes);
    node_probabilities(taxonomy, reversed.view(), columns.data(), out.view(), Execution{2, nullptr});
    CHECK(relative_error(dense(out.view()), expected) < 1e-14);
    node_probabilities(taxonomy, rows.view(), nullptr, out.view(), Execution{1, nullptr});
    CHECK(relative_error(dense(out.view()), expected) < 1e-14);
  }
}

TEST_CASE("errors name the node at which a tree is out of order") {
  const auto message = [](std::vector<Index> parents) { return rejection([&] { Taxonomy taxonomy(parents); }); };
  CHECK(message({-1, 0, 0}).empty());
  CHECK(message({-1, 0, 0, 1}) == "");  // node 2 is a leaf of the root, met first
  CHECK(contains(message({-1, 0, 1, 0}), "node 2 is a leaf below 1, expected below 0"));
  CHECK(contains(message({-1, 0, 0, 3}), "parents[3] is 3"));
  CHECK(message({-1, 0, 0, 2}) == "node 1 has no leaf below it");
  CHECK(contains(message({}), "at least one leaf"));
  CHECK(contains(message({-1}), "at least one leaf"));
  CHECK(message({0, 0}) == "parents[0] is 0, expected -1 for the root");
  CHECK(message({-1, 1}) == "parents[1] is 1, expected a node before 1");
  CHECK(message({-1, -1}) == "parents[1] is -1, expected a node before 1");
  CHECK(message({-1, 0, 7}) == "parents[2] is 7, expected a node before 2");
}

TEST_CASE("inner nodes must come depth first") {
  // 0 -> {1, 2}, 1 -> 3, with a leaf below 2 and 3: breadth-first numbers.
  CHECK(contains(rejection([] { Taxonomy({-1, 0, 0, 1, 2, 3}); }), "depth-first order"));
  CHECK(rejection([] { Taxonomy({-1, 0, 1, 0, 2, 3}); }).empty());
}
