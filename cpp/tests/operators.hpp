// Calls of operators with Eigen's matrices, and what tests of symmetric operators share.
#pragma once

#include <doctest/doctest.h>

#include "problems.hpp"
#include "taxolearn/operators/operator.hpp"
#include "taxolearn/operators/symmetric_product.hpp"

namespace taxolearn::tests {

template <class T>
constexpr Index tile = symmetric_tile(sizeof(T));

/// Error allowed to a product of which entries are computed in precision T too.
template <class T>
constexpr double tolerance = 2.0 * rounding<T>;

inline MatrixXd symmetric(Index n, std::uint64_t seed) {
  const MatrixXd A = Random(seed).matrix(n, n);
  return MatrixXd(A.triangularView<Eigen::Lower>()) + MatrixXd(A.triangularView<Eigen::StrictlyLower>()).transpose();
}

template <class T>
MatrixXd apply(Operator<T>& op, const MatrixXd& S, const T* shift, const Execution& execution) {
  const Padded<T> in(S);
  Padded<T> out(S.rows(), S.cols());
  op.apply(in.view(), out.view(), shift, execution);
  CHECK(out.padding_untouched());
  return dense(out.view());
}

/// Checks M S and M S + 1 shift^T for a random S of m columns, on one thread and on two.
template <class T>
void check_products(Operator<T>& op, const MatrixXd& M, Index m, Random& random) {
  const MatrixXd S = random.matrix(M.rows(), m);
  const VectorXd shift = random.matrix(m, 1);
  const std::vector<T> values(shift.data(), shift.data() + m);
  const MatrixXd plain = apply<T>(op, S, nullptr, one);
  CHECK(relative_error(plain, times(M, S)) < tolerance<T>);
  CHECK(identical(apply<T>(op, S, nullptr, two), plain));
  CHECK(relative_error(apply<T>(op, S, values.data(), two), times(M, S).rowwise() + shift.transpose()) < tolerance<T>);
}

template <class T>
MatrixXd apply_cross(Operator<T>& op, const InputView& X, const MatrixXd& S, const Execution& execution) {
  const Padded<T> in(S);
  Padded<T> out(input_rows(X), S.cols());
  op.apply_cross(X, in.view(), out.view(), execution);
  CHECK(out.padding_untouched());
  return dense(out.view());
}

template <class T>
VectorXd bilinear_grad(Operator<T>& op, const MatrixXd& E, const MatrixXd& F, const Execution& execution) {
  const Padded<T> left(E), right(F);
  VectorXd gradient = VectorXd::Constant(op.parameters(), 99.0);  // is set, not added to
  op.bilinear_grad(left.view(), right.view(), gradient.data(), execution);
  return gradient;
}

}  // namespace taxolearn::tests
