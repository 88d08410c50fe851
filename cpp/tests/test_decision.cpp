#include <doctest/doctest.h>

#include <array>

#include "taxolearn/classes/decision.hpp"
#include "trees.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

constexpr double forbidden = std::numeric_limits<double>::infinity();

bool above_or_same(const Taxonomy& taxonomy, Index ancestor, Index node) {
  for (; node >= 0; node = taxonomy.parent(node))
    if (node == ancestor) return true;
  return false;
}

/// The loss of an answer, from its definition.
double loss_of(const Taxonomy& taxonomy, TreeLoss loss, Index answer, Index truth) {
  if (loss == TreeLoss::zero_one) return above_or_same(taxonomy, answer, truth) ? 0.0 : 1.0;
  if (loss == TreeLoss::parent) return taxonomy.parent(answer) == taxonomy.parent(truth) ? 0.0 : 1.0;
  Index up = 0, common = answer;
  for (; !above_or_same(taxonomy, common, truth); common = taxonomy.parent(common)) ++up;
  Index down = 0;
  for (Index node = truth; node != common; node = taxonomy.parent(node)) ++down;
  return 0.5 * static_cast<double>(up + down);
}

}  // namespace

TEST_CASE("decisions have the least expected loss of all answers, by brute force") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Index nodes = 2 + static_cast<Index>(seed) * 2;
    const Taxonomy taxonomy(random_parents(nodes, 1 + static_cast<Index>(seed % 7) * 3, seed));
    Random random(seed);
    const MatrixXd P = random.targets(6, taxonomy.classes());
    std::vector<double> costs(static_cast<std::size_t>(nodes));
    for (double& cost : costs) cost = random.below(4) == 0 ? forbidden : 0.3 * random.uniform();
    costs.back() = 0.0;
    for (const TreeLoss loss : {TreeLoss::zero_one, TreeLoss::taxo, TreeLoss::parent}) {
      for (const bool stopping : {false, true}) {
        if (stopping && loss == TreeLoss::parent) continue;
        CAPTURE(seed);
        CAPTURE(static_cast<int>(loss));
        CAPTURE(stopping);
        const auto expected_loss = [&](Index row, Index answer) {
          double sum = stopping ? costs[answer] : 0.0;
          for (Index c = 0; c < taxonomy.classes(); ++c)
            sum += P(row, c) * loss_of(taxonomy, loss, answer, taxonomy.inner() + c);
          return sum;
        };
        const Matrix<double> values = as_matrix(P);
        std::vector<Index> node(6);
        std::vector<double> expected(6);
        decide(taxonomy, {values.view(), nullptr}, loss, stopping ? costs.data() : nullptr,
               {node.data(), expected.data()}, Execution{2, nullptr});
        for (Index i = 0; i < 6; ++i) {
          double least = forbidden;
          for (Index p = stopping ? 0 : taxonomy.inner(); p < nodes; ++p) least = std::min(least, expected_loss(i, p));
          REQUIRE(node[i] >= (stopping ? 0 : taxonomy.inner()));
          CHECK(expected[i] == doctest::Approx(least).epsilon(1e-12));
          CHECK(expected_loss(i, node[i]) == doctest::Approx(least).epsilon(1e-12));
        }
      }
    }
  }
}

TEST_CASE("the confident answer is the deepest one that is probable enough") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Taxonomy taxonomy(
        random_parents(2 + static_cast<Index>(seed) * 2, 1 + static_cast<Index>(seed % 7) * 3, seed));
    const MatrixXd P = Random(seed).targets(6, taxonomy.classes());
    const MatrixXd node_probability = P * paths(taxonomy);
    const Matrix<double> values = as_matrix(P);
    for (const double confidence : {0.2, 0.5, 0.9, 1.0}) {
      std::vector<Index> node(6);
      decide_confident(taxonomy, {values.view(), nullptr}, confidence, {node.data(), nullptr}, Execution{1, nullptr});
      for (Index i = 0; i < 6; ++i) {
        CHECK((node[i] == 0 || node_probability(i, node[i]) >= confidence - 1e-12));
        for (Index p = 0; p < taxonomy.nodes(); ++p) {
          if (node_probability(i, p) < confidence + 1e-12) continue;
          CHECK(taxonomy.depth(p) <= taxonomy.depth(node[i]));
          if (taxonomy.depth(p) == taxonomy.depth(node[i]))
            CHECK(node_probability(i, p) <= node_probability(i, node[i]) + 1e-12);
        }
      }
    }
  }
}

TEST_CASE("of equal answers the first one, of siblings the most probable, and small probabilities count") {
  const Taxonomy taxonomy({-1, 0, 0, 1, 1, 1});  // leaves: one below the root, three below node 1
  const auto answer = [&](const std::array<double, 4>& row, TreeLoss loss) {
    Index node = -1;
    decide(taxonomy, {DenseView<const double>(row.data(), 1, 4), nullptr}, loss, nullptr, {&node, nullptr},
           Execution());
    return node;
  };
  for (const TreeLoss loss : {TreeLoss::zero_one, TreeLoss::taxo, TreeLoss::parent}) {
    CHECK(answer({0.1, 0.3, 0.3, 0.3}, loss) == 3);
    CHECK(answer({0.1, 0.2, 0.3, 0.4}, loss) == 5);
    CHECK(answer({0.1, 0.2, 0.4, 0.3}, loss) == 4);
  }
  CHECK(answer({0.5, 0.5, 0.0, 0.0}, TreeLoss::parent) == 2);
  CHECK(answer({1e-18, 2e-18, 0.0, 0.0}, TreeLoss::zero_one) == 3);
  // Confident answers: of two equally probable nodes of the same depth the first.
  const std::vector<double> row{0.0, 0.5, 0.5, 0.0};
  Index node = -1;
  decide_confident(taxonomy, {DenseView<const double>(row.data(), 1, 4), nullptr}, 0.5, {&node, nullptr}, Execution());
  CHECK(node == 3);
}

TEST_CASE("columns of probabilities in another order") {
  const Taxonomy taxonomy({-1, 0, 0, 1, 1});
  const std::vector<double> row{0.1, 0.6, 0.3};
  const std::vector<Index> columns{2, 0, 1};  // classes 0, 1, 2 have 0.3, 0.1, 0.6
  std::vector<Index> node(1);
  decide(taxonomy, {DenseView<const double>(row.data(), 1, 3), columns.data()}, TreeLoss::zero_one, nullptr,
         {node.data(), nullptr}, Execution());
  CHECK(node[0] == 4);
}

TEST_CASE("bad questions are rejected") {
  const Taxonomy taxonomy({-1, 0, 0});
  const std::vector<double> row{0.5, 0.5};
  const std::vector<double> costs{forbidden, forbidden, forbidden};
  Index node = 0;
  const auto message = [&](TreeLoss loss, const double* prices, Index cols) {
    return rejection([&] {
      decide(taxonomy, {DenseView<const double>(row.data(), 1, cols), nullptr}, loss, prices, {&node, nullptr},
             Execution());
    });
  };
  CHECK(message(TreeLoss::taxo, nullptr, 2).empty());
  CHECK(message(TreeLoss::taxo, nullptr, 1) == "probabilities has shape (1, 1), expected (1, 2)");
  CHECK(message(TreeLoss::taxo, costs.data(), 2) == "costs rule out every node");
  CHECK(contains(message(TreeLoss::parent, row.data(), 2), "takes no costs"));
  for (const double confidence : {0.0, 1.5, std::nan("")}) {
    CHECK(contains(rejection([&] {
                     decide_confident(taxonomy, {DenseView<const double>(row.data(), 1, 2), nullptr}, confidence,
                                      {&node, nullptr}, Execution());
                   }),
                   "expected a number in (0, 1]"));
  }
}
