#include <doctest/doctest.h>

#include "taxolearn/couplings/graph.hpp"
#include "taxolearn/couplings/independent.hpp"
#include "taxolearn/couplings/replicated.hpp"
#include "taxolearn/couplings/tree.hpp"
#include "trees.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

/// Every function of a coupling against its dense root; tied(k) are the variances at shifted parameters.
template <class Make>
void check_against_dense(const Make& make, const TiedVariances& tied, const MatrixXd& R, std::uint64_t seed) {
  const std::unique_ptr<Coupling> coupling = make(tied);
  check_products(*coupling, R, seed);
  constexpr Index rows = 35;
  const MatrixXd G = R * R.transpose();
  Random random(seed + 1);
  const MatrixXd S = random.matrix(rows, R.rows()), H = random.matrix(rows, R.rows());
  std::vector<double> gradient(static_cast<std::size_t>(coupling->parameters()), 0.0);
  coupling->bilinear_grad(rows, as_matrix(S).data(), as_matrix(H).data(), gradient.data());
  for (Index k = 0; k < coupling->parameters(); ++k) {
    const auto value = [&](double shift) {
      TiedVariances moved = tied;
      for (std::size_t p = 0; p < moved.variances.size(); ++p)
        if (moved.group(static_cast<Index>(p)) == k) moved.variances[p] *= std::exp(shift);
      Matrix<double> product = as_matrix(H);
      make(moved)->apply(rows, product.data());
      return (S.array() * dense(product.view()).array()).sum();
    };
    const double h = 1e-5;
    CHECK(gradient[k] == doctest::Approx((value(h) - value(-h)) / (2.0 * h)).epsilon(1e-7).scale(G.norm()));
  }
  const VectorXd products = ((S * R).array() * (H * R).array()).colwise().sum();
  std::vector<double> by_factor(gradient.size(), 0.0);
  coupling->factor_grad(products.data(), by_factor.data());
  for (std::size_t k = 0; k < gradient.size(); ++k)
    CHECK(by_factor[k] == doctest::Approx(gradient[k]).epsilon(1e-12).scale(products.norm()));
}

}  // namespace

TEST_CASE("a tree's coupling against Phi diag(v) Phi^T, any shape") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const Index nodes = 2 + static_cast<Index>(seed) * 3;
    const auto taxonomy =
        std::make_shared<const Taxonomy>(random_parents(nodes, 1 + static_cast<Index>(seed % 9) * 4, seed));
    const TiedVariances tied = random_variances(nodes, seed);
    check_against_dense(
        [&](const TiedVariances& variances) { return std::make_unique<TreeCoupling>(taxonomy, variances); }, tied,
        dense_root(*taxonomy, tied), seed);
  }
}

TEST_CASE("independent classes against diag(v)") {
  for (const Index classes : {2, 17}) {
    const TiedVariances tied = random_variances(classes, 3);
    const Eigen::Map<const VectorXd> v(tied.variances.data(), classes);
    const MatrixXd R = v.cwiseSqrt().asDiagonal();
    check_against_dense([](const TiedVariances& variances) { return std::make_unique<IndependentCoupling>(variances); },
                        tied, R, 4);
  }
}

TEST_CASE("the root has no variance and no parameter") {
  const auto taxonomy = std::make_shared<const Taxonomy>(std::vector<Index>{-1, 0, 0});
  const TreeCoupling coupling(taxonomy, {{7.0, 1.0, 2.0}, {2, 0, 1}});
  CHECK(coupling.parameters() == 2);
  std::vector<double> S{1.0, 1.0};
  coupling.apply(1, S.data());
  CHECK(S == std::vector<double>{1.0, 2.0});
}

TEST_CASE("errors name the position of bad variances and groups") {
  const auto taxonomy = std::make_shared<const Taxonomy>(std::vector<Index>{-1, 0, 0});
  const auto message = [&](std::vector<double> variances, std::vector<Index> groups) {
    return rejection([&] { TreeCoupling(taxonomy, {variances, groups}); });
  };
  CHECK(message({0.0, 1.0, 2.0}, {}).empty());
  CHECK(message({1.0, 2.0}, {}) == "variances has 2 elements, expected 3, one per node");
  CHECK(message({0.0, 1.0, -2.0}, {}) == "variances[2] is -2, expected a finite number of at least 0");
  CHECK(contains(message({0.0, std::nan(""), 1.0}, {}), "variances[1]"));
  CHECK(message({0.0, 1.0, 1.0}, {0, 1}) == "groups has 2 elements, expected 3");
  CHECK(message({0.0, 1.0, 1.0}, {0, 0, 3}) == "groups[2] is 3, expected -1 or a number below 3");
  CHECK(contains(rejection([] { TreeCoupling(nullptr, {}); }), "no taxonomy"));
  CHECK(contains(rejection([] { IndependentCoupling coupling({}); }), "variances is empty"));
}

TEST_CASE("a replicated coupling acts on every copy alone") {
  const auto taxonomy = std::make_shared<const Taxonomy>(random_parents(12, 3, 5));
  const TreeCoupling tree(taxonomy, random_variances(12, 6));
  const Index C = tree.classes();
  const ReplicatedCoupling coupling(tree, 3);
  REQUIRE(coupling.classes() == 3 * C);
  REQUIRE(coupling.factors() == 3 * tree.factors());
  const MatrixXd S = Random(7).matrix(4, 3 * C);
  Matrix<double> whole = as_matrix(S);
  coupling.apply(4, whole.data());
  Matrix<double> factors(4, coupling.factors());
  coupling.to_factors(4, as_matrix(S).data(), factors.data());
  for (Index copy = 0; copy < 3; ++copy) {
    Matrix<double> part = as_matrix(S.middleCols(copy * C, C));
    Matrix<double> part_factors(4, tree.factors());
    tree.to_factors(4, part.data(), part_factors.data());
    tree.apply(4, part.data());
    CHECK(identical(dense(whole.view()).middleCols(copy * C, C), dense(part.view())));
    CHECK(
        identical(dense(factors.view()).middleCols(copy * tree.factors(), tree.factors()), dense(part_factors.view())));
  }
  std::vector<double> diagonal(static_cast<std::size_t>(3 * C)), own(static_cast<std::size_t>(C));
  coupling.diag(diagonal.data());
  tree.diag(own.data());
  for (std::size_t k = 0; k < diagonal.size(); ++k) CHECK(diagonal[k] == own[k % own.size()]);
}

namespace {

/// Any graph: cycles, several components, nodes without edges; every node has a ridge, or only the first of each
/// component.
GraphPrecision random_graph(Index nodes, Index edges, bool held_everywhere, std::uint64_t seed) {
  Random random(seed);
  GraphPrecision out;
  std::vector<Index> component(static_cast<std::size_t>(nodes));
  std::iota(component.begin(), component.end(), Index(0));
  for (Index k = 0; k < edges && nodes > 1; ++k) {
    const Index i = random.below(nodes);
    const Index j = (i + 1 + random.below(nodes - 1)) % nodes;
    out.first.push_back(i);
    out.second.push_back(j);
    out.weights.push_back(0.25 + random.uniform());
    const Index from = component[i], to = component[j];
    for (Index& each : component)
      if (each == from) each = to;
  }
  for (Index i = 0; i < nodes; ++i)
    out.ridges.push_back(held_everywhere || component[i] == i ? 0.1 + random.uniform() : 0.0);
  return out;
}

MatrixXd dense_covariance(const GraphPrecision& precision, const std::vector<Index>& classes, double variance) {
  const Index nodes = precision.nodes();
  MatrixXd Q = Eigen::Map<const VectorXd>(precision.ridges.data(), nodes).asDiagonal();
  for (std::size_t k = 0; k < precision.weights.size(); ++k) {
    VectorXd difference = VectorXd::Zero(nodes);
    difference[precision.first[k]] = 1.0;
    difference[precision.second[k]] = -1.0;
    Q += precision.weights[k] * difference * difference.transpose();
  }
  const MatrixXd inverse = Q.inverse();
  const auto C = static_cast<Index>(classes.size());
  MatrixXd G(C, C);
  for (Index a = 0; a < C; ++a)
    for (Index b = 0; b < C; ++b) G(a, b) = variance * inverse(classes[a], classes[b]);
  return G;
}

}  // namespace

TEST_CASE("a graph's coupling against the inverse of its precision, stored and by substitutions") {
  int stored = 0, sparse = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    const Index nodes = 1 + static_cast<Index>(seed) * 3;
    const GraphPrecision precision = random_graph(nodes, nodes + static_cast<Index>(seed % 5), seed % 3 > 0, seed);
    std::vector<Index> classes;  // all nodes, or some, in another order
    for (Index i = nodes - 1; i >= 0; --i)
      if (seed % 2 == 0 || i % 3 == 0) classes.push_back(i);
    const double variance = 1.5;
    const GraphCoupling coupling(precision, classes, variance);
    (coupling.is_stored() ? stored : sparse) += 1;
    const Index C = coupling.classes(), F = coupling.factors();
    Matrix<double> identity(F, F), columns(F, C);
    for (Index k = 0; k < F; ++k) identity.row(k)[k] = 1.0;
    coupling.from_factors(F, identity.data(), columns.data());
    const MatrixXd R = dense(columns.view()).transpose();
    const MatrixXd G = dense_covariance(precision, classes, variance);
    CHECK(relative_error(MatrixXd(R * R.transpose()), G) < 1e-12);  // as good as the dense inverse
    check_products(coupling, R, seed);

    constexpr Index rows = 35;
    Random random(seed + 1);
    const MatrixXd E = random.matrix(rows, C), H = random.matrix(rows, C);
    std::vector<double> gradient(2, 0.0);
    coupling.bilinear_grad(rows, as_matrix(E).data(), as_matrix(H).data(), gradient.data());
    const auto value = [&](double log_variance, double log_ridge) {
      GraphPrecision moved = precision;
      for (double& ridge : moved.ridges) ridge *= std::exp(log_ridge);
      const MatrixXd at = dense_covariance(moved, classes, variance * std::exp(log_variance));
      return (E * at).cwiseProduct(H).sum();
    };
    const double h = 1e-5;
    CHECK(gradient[0] == doctest::Approx((value(h, 0) - value(-h, 0)) / (2 * h)).epsilon(1e-7).scale(G.norm()));
    CHECK(gradient[1] == doctest::Approx((value(0, h) - value(0, -h)) / (2 * h)).epsilon(1e-7).scale(G.norm()));
  }
  CHECK(stored > 5);
  CHECK(sparse > 5);
}

TEST_CASE("a tiny ridge costs no accuracy: everything is a sum of positive terms") {
  // A chain whose end is held: G[a, b] = 1 / ridge + min(a, b).
  constexpr Index nodes = 200;
  const double ridge = 1e-9;
  GraphPrecision chain;
  std::vector<Index> classes;
  for (Index k = 0; k < nodes; ++k) {
    classes.push_back(k);
    chain.ridges.push_back(k == 0 ? ridge : 0.0);
    if (k == 0) continue;
    chain.first.push_back(k - 1);
    chain.second.push_back(k);
    chain.weights.push_back(1.0);
  }
  const GraphCoupling coupling(chain, classes, 1.0);
  REQUIRE_FALSE(coupling.is_stored());
  Matrix<float> unit(1, nodes);
  unit.row(0)[nodes - 1] = 1.0F;
  coupling.apply(1, unit.data());
  for (Index k = 0; k < nodes; ++k)
    CHECK(unit.row(0)[k] == doctest::Approx(1.0 / ridge + static_cast<double>(k)).epsilon(1e-4));
}

TEST_CASE("errors of graphs name what is wrong") {
  GraphPrecision good;
  good.first = {0};
  good.second = {1};
  good.weights = {1.0};
  good.ridges = {0.5, 0.0, 1.0};
  const auto message = [](const GraphPrecision& precision, std::vector<Index> classes = {0, 1}, double variance = 1.0) {
    return rejection([&] { GraphCoupling(precision, classes, variance); });
  };
  CHECK(message(good).empty());
  GraphPrecision bad = good;
  bad.second = {3};
  CHECK(message(bad) == "edge 0 has the node 3, expected 0 to 2");
  bad.second = {0};
  CHECK(message(bad) == "edge 0 joins node 0 to itself");
  bad.second = {};
  CHECK(contains(message(bad), "expected one each per edge"));
  bad = good;
  bad.weights = {0.0};
  CHECK(message(bad) == "weights[0] is 0, expected a finite number above 0");
  bad = good;
  bad.ridges[1] = -1.0;
  CHECK(message(bad) == "ridges[1] is -1, expected a finite number of at least 0");
  bad.ridges = {0.0, 0.0, 1.0};
  CHECK(message(bad) == "no node that is connected with node 0 has a ridge");
  CHECK(message({}) == "the graph has no nodes");
  CHECK(message(good, {}) == "classes is empty, expected the nodes of one or more classes");
  CHECK(message(good, {0, 3}) == "classes has the node 3, expected 0 to 2");
  CHECK(message(good, {1, 1}) == "classes has the node 1 twice");
  CHECK(contains(message(good, {0}, 0.0), "variance is 0"));
}
