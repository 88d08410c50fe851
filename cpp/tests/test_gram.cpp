#include <doctest/doctest.h>

#include "operators.hpp"
#include "own_kernel.hpp"
#include "taxolearn/operators/gram.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

/// Three kernels on the same inputs.
std::vector<OwnKernel> some_kernels() { return {{1.25, 0.75}, {0.5, 2.0}, {3.0, 1.0}}; }

template <class T>
std::vector<std::unique_ptr<Operator<T>>> make(const DenseInputs& inputs, const Execution& execution) {
  std::vector<std::shared_ptr<const Kernel>> kernels;
  for (const OwnKernel& kernel : some_kernels()) kernels.push_back(std::make_shared<OwnKernel>(kernel));
  return make_gram<T>(kernels, inputs.view(), execution);
}

/// Everything the operator says is that of the kernel on these rows.
template <class T>
void check_operator(Operator<T>& op, const OwnKernel& kernel, const MatrixXd& X) {
  const Index n = X.rows();
  REQUIRE(op.rows() == n);
  CHECK(op.algorithm() == "gram");
  const MatrixXd M = kernel.matrix(X, X);
  Random random(2);
  for (const Index m : {1, 5}) check_products<T>(op, M, m, random);
  const DenseInputs fresh(70, X.cols(), 4);
  const MatrixXd S = random.matrix(n, 3);
  const Padded<T> in(S);
  Padded<T> out(70, 3), again(70, 3);
  op.apply_cross(fresh.view(), in.view(), out.view(), one);
  CHECK(relative_error(dense(out.view()), times(kernel.matrix(fresh.X, X), S)) < tolerance<T>);
  op.apply_cross(fresh.view(), in.view(), again.view(), two);
  CHECK(identical(dense(out.view()), dense(again.view())));
  VectorXd diagonal(n);
  op.diag(diagonal.data());
  CHECK(relative_error(diagonal, M.diagonal()) < 1e-15);

  REQUIRE(op.parameters() == 2);
  const MatrixXd F = random.matrix(n, 3);
  const Padded<T> right(F);
  VectorXd gradient(2);
  op.bilinear_grad(in.view(), right.view(), gradient.data(), two);
  const auto trace = [&](double step) {
    const OwnKernel moved(kernel.length * std::exp(step), kernel.variance);
    return bilinear(S, moved.matrix(X, X), F);
  };
  const double by_length = (trace(1e-5) - trace(-1e-5)) / 2e-5;
  CHECK(std::abs(gradient(0) - by_length) <= 1e-6 * (1.0 + std::abs(by_length)));
  CHECK(gradient(1) == doctest::Approx(trace(0.0)).epsilon(1e-12));
}

}  // namespace

TEST_CASE_TEMPLATE("gram: one operator per kernel on one store", T, float, double) {
  for (const Index n : {Index{1}, Index{2}, tile<T>, 2 * tile<T> + 10}) {
    CAPTURE(n);
    const DenseInputs inputs(n, 3, 1);
    const auto operators = make<T>(inputs, two);
    const std::vector<OwnKernel> kernels = some_kernels();
    REQUIRE(operators.size() == kernels.size());
    for (std::size_t l = 0; l < kernels.size(); ++l) check_operator<T>(*operators[l], kernels[l], inputs.X);
  }
}

TEST_CASE("gram: entries are computed in double precision and rounded") {
  const DenseInputs inputs(20, 3, 1);
  const auto operators = make<float>(inputs, one);
  const MatrixXd M = some_kernels()[1].matrix(inputs.X, inputs.X);
  const MatrixXd out = apply<float>(*operators[1], MatrixXd::Identity(20, 20), nullptr, one);
  CHECK(relative_error(out, M.cast<float>().cast<double>()) < 1e-8);  // the distances differ in the last bit
}

TEST_CASE_TEMPLATE("gram: subsets of different kernels may take turns", T, float, double) {
  const DenseInputs inputs(tile<T> + 40, 3, 1);
  const auto operators = make<T>(inputs, two);
  const std::vector<OwnKernel> kernels = some_kernels();
  for (const Index active : {Index{6}, tile<T> + 2, inputs.X.rows()}) {
    std::vector<Index> rows = shuffled(inputs.X.rows(), static_cast<std::uint64_t>(active));
    rows.resize(static_cast<std::size_t>(active));
    const MatrixXd X = inputs.X(rows, Eigen::all);
    for (std::size_t l = 0; l < kernels.size(); ++l) {
      check_operator<T>(*operators[l]->subset(rows, two), kernels[l], X);
      check_operator<T>(*operators[l], kernels[l], inputs.X);
    }
  }
}

TEST_CASE("gram: what cannot be stored is rejected") {
  const DenseInputs inputs(33, 3, 1);
  CHECK(rejection([&] { make_gram<double>({}, inputs.view(), one); }) ==
        "kernels is empty, expected at least one kernel");
  CHECK(rejection([&] {
          make_gram<double>({std::make_shared<OwnKernel>(1.0, 1.0)}, DenseView<const double>(nullptr, 0, 3), one);
        }) == "X has no rows, expected at least one");
  const Inputs sparse(4, 8, 2, 1);
  CHECK(rejection([&] { make_gram<double>({std::make_shared<OwnKernel>(1.0, 1.0)}, sparse.sparse(), one); }) ==
        "the inputs are not dense rows in double precision");
  const auto operators = make<double>(inputs, one);
  Matrix<double> S(33, 2), out(32, 2);
  CHECK(rejection([&] { operators[0]->apply(S.view(), out.view(), nullptr, one); }) ==
        "out has shape (32, 2), expected (33, 2)");
}

TEST_CASE("gram: memory is known beforehand") {
  CHECK(gram_bytes(7291, 10, sizeof(float)) == packed_symmetric_bytes(7291, 10, sizeof(float)));
  CHECK(gram_bytes(7291, 10, sizeof(float)) / (5.0 * 7291.0 * 7291.0 * 4.0) == doctest::Approx(1.02).epsilon(0.02));
}

TEST_CASE("gram: Ctrl-C ends the filling") {
  const DenseInputs inputs(3000, 200, 1);  // far longer than the monitor's interval
  for (const int threads : {1, 2}) {
    Stopping monitor;
    CHECK_THROWS_AS(make<float>(inputs, Execution{threads, &monitor}), Interrupted);
  }
}
