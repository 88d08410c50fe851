// Subsets of rows: what every operator promises about them.

#include <doctest/doctest.h>

#include <functional>
#include <numeric>

#include "operators.hpp"
#include "own_kernel.hpp"
#include "taxolearn/operators/gram.hpp"
#include "taxolearn/operators/kernel_matrices.hpp"
#include "taxolearn/operators/linear.hpp"
#include "taxolearn/operators/tiled.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

constexpr double variance = 1.7;

/// An operator, and the matrix it stands for: that of all rows, or, where an approximation depends on the rows, of
/// some.
template <class T>
struct Subject {
  std::string name;
  std::unique_ptr<Operator<T>> op;
  std::function<MatrixXd(const std::vector<Index>&)> matrix;
  std::function<MatrixXd(const std::vector<Index>&)> cross;  ///< between the new inputs and these rows
  InputView fresh;
};

/// Products, derivatives and diagonal are those of the matrix of these rows.
template <class T>
void check(Operator<T>& op, const Subject<T>& subject, const std::vector<Index>& rows) {
  const double tolerance = 4.0 * rounding<T>;
  const auto n = static_cast<Index>(rows.size());
  REQUIRE(op.rows() == n);
  CHECK(op.algorithm() == subject.op->algorithm());
  const MatrixXd M = subject.matrix(rows);
  const MatrixXd S = Random(static_cast<std::uint64_t>(n)).matrix(n, 4);
  CHECK(relative_error(apply<T>(op, S, nullptr, two), times(M, S)) < tolerance);
  VectorXd diagonal(n);
  op.diag(diagonal.data());
  CHECK(relative_error(diagonal, M.diagonal()) < 1e-12);
  const Padded<T> in(S);
  const MatrixXd C = subject.cross(rows);
  Padded<T> out(C.rows(), 4);
  op.apply_cross(subject.fresh, in.view(), out.view(), two);
  CHECK(relative_error(dense(out.view()), times(C, S)) < tolerance);
  std::vector<double> gradient(static_cast<std::size_t>(op.parameters()));
  op.bilinear_grad(in.view(), in.view(), gradient.data(), two);
  CHECK(gradient.back() == doctest::Approx(bilinear(S, M, S)).epsilon(1e-5));  // the last parameter is log variance
}

/// body(subject) for every operator in precision T; `rows` of them.
template <class T, class Body>
void for_subjects(Index rows, const Body& body) {
  const Inputs inputs(rows, 24, 4, 9), others(11, 24, 4, 10);
  const auto linear = [&](const std::vector<Index>& in) {
    const MatrixXd X = inputs.X(in, Eigen::all);
    return MatrixXd(variance * times(X, X.transpose()));
  };
  const auto linear_cross = [&](const std::vector<Index>& in) {
    return MatrixXd(variance * times(others.X, inputs.X(in, Eigen::all).transpose()));
  };
  for (const InputView& X : inputs.views) {
    for (const LinearAlgorithm algorithm : {LinearAlgorithm::sparse, LinearAlgorithm::dense, LinearAlgorithm::stored}) {
      if (algorithm == LinearAlgorithm::sparse && !is_sparse(X)) continue;
      if (algorithm == LinearAlgorithm::dense && is_sparse(X)) continue;
      body(Subject<T>{"linear", make_linear<T>(X, variance, algorithm, two), linear, linear_cross, others.sparse()});
    }
    body(Subject<T>{"features", make_linear_features<T>(X, variance, two), linear, linear_cross, others.sparse()});
  }
  const DenseInputs points(rows, 3, 1), fresh(11, 3, 2);
  const auto kernel = std::make_shared<OwnKernel>(1.25, variance);
  const auto own = [&](const std::vector<Index>& in) {
    const MatrixXd X = points.X(in, Eigen::all);
    return kernel->matrix(X, X);
  };
  const auto own_cross = [&](const std::vector<Index>& in) {
    return kernel->matrix(fresh.X, MatrixXd(points.X(in, Eigen::all)));
  };
  body(Subject<T>{"tiled", std::make_unique<Tiled<T>>(kernel, points.view(), two), own, own_cross, fresh.view()});
  body(Subject<T>{"gram", std::move(make_gram<T>({kernel}, points.view(), two).front()), own, own_cross, fresh.view()});
}

std::vector<Index> all_of(Index n) {
  std::vector<Index> out(static_cast<std::size_t>(n));
  std::iota(out.begin(), out.end(), Index{0});
  return out;
}

std::vector<Index> some_of(Index n, Index count, std::uint64_t seed) {
  std::vector<Index> out = shuffled(n, seed);
  out.resize(static_cast<std::size_t>(count));
  return out;
}

}  // namespace

TEST_CASE_TEMPLATE("subsets are operators of their rows, and leave the others as they were", T, float, double) {
  const Index n = symmetric_tile(sizeof(T)) + 40;
  for_subjects<T>(n, [&](const Subject<T>& subject) {
    CAPTURE(subject.name);
    const std::vector<std::vector<Index>> rows{some_of(n, 7, 1), some_of(n, n - 9, 2), {5}, some_of(n, n, 3)};
    Operators<T> views;
    for (const auto& each : rows) views.push_back(subject.op->subset(each, two));
    check(*subject.op, subject, all_of(n));
    for (const std::size_t turn : {0U, 1U, 0U, 3U, 2U, 1U, 3U}) {
      check(*views[turn], subject, rows[turn]);
      if (turn == 2) check(*subject.op, subject, all_of(n));
    }
    check(*subject.op, subject, all_of(n));
  });
}

TEST_CASE_TEMPLATE("subsets of subsets count among these, and need nobody else", T, float, double) {
  const Index n = 33;
  for_subjects<T>(n, [&](Subject<T> subject) {
    CAPTURE(subject.name);
    const std::vector<Index> outer = some_of(n, 20, 1), inner = some_of(20, 6, 2);
    auto first = subject.op->subset(outer, two);
    auto second = first->subset(inner, two);
    std::vector<Index> rows;
    for (const Index i : inner) rows.push_back(outer[static_cast<std::size_t>(i)]);
    check(*second, subject, rows);
    check(*first, subject, outer);
    first.reset();
    check(*second, subject, rows);
    CHECK(rejection([&] { second->subset({6}, one); }) == "rows contains 6, expected indices in [0, 6)");
  });
}

TEST_CASE_TEMPLATE("what is no subset is rejected", T, float, double) {
  for_subjects<T>(33, [&](const Subject<T>& subject) {
    CAPTURE(subject.name);
    Operator<T>& op = *subject.op;
    CHECK(rejection([&] { op.subset({3, 33}, one); }) == "rows contains 33, expected indices in [0, 33)");
    CHECK(rejection([&] { op.subset({-1}, one); }) == "rows contains -1, expected indices in [0, 33)");
    CHECK(rejection([&] { op.subset({4, 2, 4}, one); }) == "rows contains 4 twice");
    CHECK(rejection([&] { op.subset({}, one); }) == "rows is empty, expected at least one row to select");
    check(op, subject, all_of(33));
  });
}

TEST_CASE("stored matrices move twice per fold, whatever the number of products") {
  const Index n = 90;
  const DenseInputs points(n, 3, 1);
  std::vector<std::shared_ptr<const Kernel>> kernels{std::make_shared<OwnKernel>(1.25, 0.75),
                                                     std::make_shared<OwnKernel>(0.5, 2.0)};
  const auto store = std::make_shared<PackedSymmetric<double>>(n, 2);
  const InputRows all{points.view(), {}};
  Operators<double> operators;
  for (const auto& kernel : kernels) {
    const auto l = static_cast<Index>(operators.size());
    store->fill(l, *kernel->double_entries(all, all, one), one);
    operators.push_back(std::make_unique<Gram<double>>(kernel, all, store, l));
  }
  const auto use = [&](const Operators<double>& ops) {
    for (const auto& op : ops) apply<double>(*op, MatrixXd::Ones(op->rows(), 2), nullptr, two);
  };
  use(operators);
  CHECK(store->moves() == 0);
  for (int fold = 0; fold < 3; ++fold) {
    std::vector<Index> rows, held_out;
    for (Index i = 0; i < n; ++i) (i % 3 == fold ? held_out : rows).push_back(i);
    std::vector<Index> both = rows;
    both.insert(both.end(), held_out.begin(), held_out.end());
    Operators<double> part, whole;
    for (const auto& op : operators) {
      part.push_back(op->subset(rows, one));
      whole.push_back(op->subset(both, one));
    }
    for (int round = 0; round < 3; ++round) {
      use(part);
      use(part);
      use(whole);
    }
    CHECK(store->moves() <= 2 * (fold + 1));
  }
  const int moves = store->moves();
  use(operators);
  CHECK(store->moves() == moves + 1);
  CHECK(store->order() == all_of(n));
}

TEST_CASE_TEMPLATE("kernel matrices give the subsets of all their operators", T, float, double) {
  const Index n = 40;
  const DenseInputs points(n, 3, 1);
  const std::vector<OwnKernel> own{{1.25, 0.75}, {0.5, 2.0}};
  for (const KernelAlgorithm algorithm : {KernelAlgorithm::gram, KernelAlgorithm::tiled}) {
    KernelSettings settings;
    settings.algorithm = algorithm;
    KernelMatrices matrices({std::make_shared<OwnKernel>(own[0]), std::make_shared<OwnKernel>(own[1])}, points.view(),
                            settings);
    const std::vector<Index> rows = some_of(n, 12, 4);
    const Operators<T> part = matrices.subset<T>(rows, two);
    REQUIRE(part.size() == 2);
    const MatrixXd X = points.X(rows, Eigen::all);
    const MatrixXd S = Random(5).matrix(12, 3), all = Random(6).matrix(n, 3);
    for (std::size_t l = 0; l < 2; ++l) {
      CHECK(part[l]->algorithm() == algorithm_name(algorithm));
      CHECK(relative_error(apply<T>(*part[l], S, nullptr, two), times(own[l].matrix(X, X), S)) < 4.0 * rounding<T>);
      CHECK(relative_error(apply<T>(*matrices.operators<T>(two)[l], all, nullptr, two),
                           times(own[l].matrix(points.X, points.X), all)) < 4.0 * rounding<T>);
    }
  }
}
