#include <doctest/doctest.h>

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
