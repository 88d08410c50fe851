#include <doctest/doctest.h>

#include "operators.hpp"
#include "own_kernel.hpp"
#include "taxolearn/operators/packed_symmetric.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

/// Entries of a given matrix; what is above the diagonal block of a tile is never asked for.
template <class T>
struct GivenEntries final : KernelEntries<T> {
  const MatrixXd& M;

  explicit GivenEntries(const MatrixXd& M_) : M(M_) {}
  void block(Index i, Index j, DenseView<T> out) const override {
    for (Index r = 0; r < out.rows; ++r) {
      for (Index c = 0; c < out.cols; ++c) out.row(r)[c] = static_cast<T>(M(i + r, j + c));
    }
  }
  void gradient(Index, Index, DenseView<const double>, double*) const override {}
};

template <class T>
PackedSymmetric<T> packed(const std::vector<MatrixXd>& matrices) {
  PackedSymmetric<T> out(matrices.front().rows(), static_cast<Index>(matrices.size()));
  for (std::size_t l = 0; l < matrices.size(); ++l) {
    out.fill(static_cast<Index>(l), GivenEntries<double>(matrices[l]), two);
  }
  return out;
}

std::vector<MatrixXd> some_matrices(Index n, Index count) {
  std::vector<MatrixXd> out;
  for (Index l = 0; l < count; ++l) out.push_back(symmetric(n, static_cast<std::uint64_t>(l) + 1));
  return out;
}

template <class T>
MatrixXd product(PackedSymmetric<T>& store, Index l, const MatrixXd& S, const T* shift, const Execution& execution) {
  const Padded<T> in(S);
  Padded<T> out(S.rows(), S.cols());
  store.multiply(l, in.view(), out.view(), shift, execution);
  CHECK(out.padding_untouched());
  return dense(out.view());
}

/// The store holds the matrices with these original rows at its places, to the last bit.
template <class T>
void check_elements(const PackedSymmetric<T>& store, const std::vector<MatrixXd>& matrices) {
  const std::vector<Index>& order = store.order();
  for (std::size_t l = 0; l < matrices.size(); ++l) {
    Index wrong = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (std::size_t j = 0; j < order.size(); ++j) {
        const T value = store.at(static_cast<Index>(l), static_cast<Index>(i), static_cast<Index>(j));
        wrong += value == static_cast<T>(matrices[l](order[i], order[j])) ? 0 : 1;
      }
    }
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("the matrices of a store have their own products and diagonals", T, float, double) {
  for (const Index n : {Index{1}, Index{2}, tile<T> - 1, tile<T>, tile<T> + 1, 3 * tile<T> + 20}) {
    CAPTURE(n);
    for (const Index count : {1, 2, 3}) {
      const std::vector<MatrixXd> matrices = some_matrices(n, count);
      PackedSymmetric<T> store = packed<T>(matrices);
      CHECK(store.size() == n);
      CHECK(store.count() == count);
      CHECK(store.active() == n);
      check_elements(store, matrices);
      for (Index l = 0; l < count; ++l) {
        const MatrixXd& M = matrices[static_cast<std::size_t>(l)];
        for (const Index m : {1, 5}) {
          const MatrixXd S = Random(8).matrix(n, m);
          const VectorXd shift = Random(9).matrix(m, 1);
          const std::vector<T> values(shift.data(), shift.data() + m);
          const MatrixXd out = product<T>(store, l, S, nullptr, one);
          CHECK(relative_error(out, times(M, S)) < tolerance<T>);
          CHECK(identical(product<T>(store, l, S, nullptr, two), out));
          CHECK(relative_error(product<T>(store, l, S, values.data(), two), times(M, S).rowwise() + shift.transpose()) <
                tolerance<T>);
        }
        const std::vector<T> diagonal = store.diagonal(l);
        REQUIRE(static_cast<Index>(diagonal.size()) == n);
        for (Index i = 0; i < n; ++i) CHECK(diagonal[static_cast<std::size_t>(i)] == static_cast<T>(M(i, i)));
      }
    }
  }
}

TEST_CASE("entries in single precision are stored as they come") {
  const std::vector<MatrixXd> matrices = some_matrices(tile<float> + 7, 1);
  PackedSymmetric<float> store(matrices[0].rows(), 1);
  store.fill(0, GivenEntries<float>(matrices[0]), two);
  check_elements(store, matrices);
}

TEST_CASE("filling one matrix leaves the others alone") {
  std::vector<MatrixXd> matrices = some_matrices(tile<double> + 11, 3);
  PackedSymmetric<double> store = packed<double>(matrices);
  matrices[1] = symmetric(matrices[1].rows(), 77);
  store.fill(1, GivenEntries<double>(matrices[1]), two);
  check_elements(store, matrices);
}

TEST_CASE_TEMPLATE("a subset comes first in its order, and the rest is restored", T, float, double) {
  const Index n = 2 * tile<T> + 33;
  const std::vector<MatrixXd> matrices = some_matrices(n, 3);
  PackedSymmetric<T> store = packed<T>(matrices);
  const auto check = [&](const std::vector<Index>& rows) {
    const auto active = static_cast<Index>(rows.size());
    CAPTURE(active);
    REQUIRE(store.active() == active);
    CHECK(std::equal(rows.begin(), rows.end(), store.order().begin()));
    std::vector<Index> sorted = store.order();
    std::sort(sorted.begin(), sorted.end());
    for (Index i = 0; i < n; ++i) CHECK(sorted[static_cast<std::size_t>(i)] == i);
    check_elements(store, matrices);
    const MatrixXd S = Random(3).matrix(active, 4);
    for (Index l = 0; l < 3; ++l) {
      const MatrixXd M = matrices[static_cast<std::size_t>(l)](rows, rows);
      const MatrixXd out = product<T>(store, l, S, nullptr, two);
      CHECK(relative_error(out, times(M, S)) < tolerance<T>);
      const std::vector<T> diagonal = store.diagonal(l);
      REQUIRE(static_cast<Index>(diagonal.size()) == active);
      for (Index i = 0; i < active; ++i) CHECK(diagonal[static_cast<std::size_t>(i)] == static_cast<T>(M(i, i)));
    }
  };
  std::vector<Index> identity(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i) identity[static_cast<std::size_t>(i)] = i;
  for (const Index active :
       {Index{1}, Index{2}, tile<T> - 1, tile<T>, tile<T> + 1, n - 1, n}) {  // each after the other
    std::vector<Index> rows = shuffled(n, static_cast<std::uint64_t>(active));
    rows.resize(static_cast<std::size_t>(active));
    store.arrange(rows, active % 2 == 0 ? one : two);
    check(rows);
    store.arrange(rows, two);  // again: nothing to do
    check(rows);
  }
  store.restore(two);
  check(identity);
  const std::vector<Index> swapped{n - 1, 0};  // one exchange across all tiles
  store.arrange(swapped, one);
  check(swapped);
  store.restore(one);
  check(identity);
}

TEST_CASE_TEMPLATE("two matrices take little more than one square", T, float, double) {
  const Index n = 4 * tile<T> + 100;
  const double square = static_cast<double>(n * n) * sizeof(T);
  const PackedSymmetric<T> store(n, 2);
  CHECK(store.memory_bytes() == packed_symmetric_bytes(n, 2, sizeof(T)));
  CHECK(store.memory_bytes() >= square);
  CHECK(store.memory_bytes() <= square + static_cast<double>((n + tile<T>)*tile<T>) * sizeof(T));
  CHECK(packed_symmetric_bytes(n, 7, sizeof(T)) == 3.5 * store.memory_bytes());
  CHECK(packed_symmetric_bytes(100000, 10, sizeof(T)) / (1e10 * 5 * sizeof(T)) == doctest::Approx(1.0).epsilon(0.003));
}

TEST_CASE("a store that was interrupted in a change says so") {
  const std::vector<MatrixXd> matrices = some_matrices(tile<float> + 7, 1);
  PackedSymmetric<float> store = packed<float>(matrices);
  Monitor monitor;
  monitor.stop();
  const Execution stopped{2, &monitor};
  const MatrixXd S = MatrixXd::Ones(store.size(), 1);
  CHECK_THROWS_AS(product<float>(store, 0, S, nullptr, stopped), Interrupted);
  CHECK(relative_error(product<float>(store, 0, S, nullptr, two), matrices[0] * S) < tolerance<float>);
  CHECK_THROWS_AS(store.arrange(shuffled(store.size(), 1), stopped), Interrupted);
  const std::string message =
      "the stored kernel matrices are not whole, as a change of them was interrupted: build them again";
  CHECK(rejection([&] { product<float>(store, 0, S, nullptr, two); }) == message);
  CHECK(rejection([&] { store.restore(two); }) == message);
  PackedSymmetric<float> fresh(matrices[0].rows(), 1);
  CHECK_THROWS_AS(fresh.fill(0, GivenEntries<double>(matrices[0]), stopped), Interrupted);
  CHECK(rejection([&] { product<float>(fresh, 0, S, nullptr, two); }) == message);
}

TEST_CASE("shapes are checked") {
  PackedSymmetric<double> store = packed<double>(some_matrices(5, 1));
  store.arrange({4, 1}, one);
  Matrix<double> S(5, 1), out(5, 1);
  CHECK(rejection([&] { store.multiply(0, S.view(), out.view(), nullptr, one); }) ==
        "S has shape (5, 1), expected (2, 1)");
}
