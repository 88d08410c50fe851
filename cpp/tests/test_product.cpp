#include <doctest/doctest.h>

#include "problems.hpp"
#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/base/product.hpp"
#include "taxolearn/base/triangular.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

/// A B, entry by entry.
MatrixXd by_hand(const MatrixXd& A, const MatrixXd& B) {
  MatrixXd out(A.rows(), B.cols());
  for (Index i = 0; i < A.rows(); ++i) {
    for (Index j = 0; j < B.cols(); ++j) {
      double sum = 0.0;
      for (Index k = 0; k < A.cols(); ++k) sum += A(i, k) * B(k, j);
      out(i, j) = sum;
    }
  }
  return out;
}

/// A lower triangle with what must not be read above its diagonal.
Padded<double> random_triangle(Index n, std::uint64_t seed) {
  MatrixXd L = Random(seed).matrix(n, n);
  for (Index i = 0; i < n; ++i) {
    L(i, i) = 2.0 + static_cast<double>(n) / 8.0 + L(i, i);
    for (Index j = i + 1; j < n; ++j) L(i, j) = std::numeric_limits<double>::quiet_NaN();
  }
  return Padded<double>(L);
}

MatrixXd lower(MatrixXd L) {
  for (Index i = 0; i < L.rows(); ++i) {
    for (Index j = i + 1; j < L.cols(); ++j) L(i, j) = 0.0;
  }
  return L;
}

}  // namespace

TEST_CASE_TEMPLATE("products of all forms, sizes and strides", T, float, double) {
  Random random(1);
  for (const Index n : {0, 1, 3, 7, 71}) {
    for (const Index depth : {0, 1, 5, 128, 300}) {
      for (const Index m : {0, 1, 4, 16, 17, 33, 63, 65, 100, 161}) {
        const MatrixXd A = random.matrix(n, depth), B = random.matrix(depth, m), before = random.matrix(n, m);
        const MatrixXd expected = by_hand(A, B);
        const Padded<T> a(A), b(B), a_transposed(A.transpose()), b_transposed(B.transpose());
        const auto check = [&](Product form, const Padded<T>& left, const Padded<T>& right) {
          CAPTURE(n);
          CAPTURE(depth);
          CAPTURE(m);
          CAPTURE(static_cast<int>(form));
          Padded<T> out(before);
          add_product(form, left.view(), right.view(), out.view());
          CHECK(relative_error(dense(out.view()), before + expected) < rounding<T>);
          add_product(form, left.view(), right.view(), out.view(), T(-1));
          CHECK((dense(out.view()) - before).norm() <= 30 * rounding<T> * (1.0 + expected.norm()));
          Padded<T> fresh(n, m);  // holds no numbers
          set_product(form, left.view(), right.view(), fresh.view(), T(0.5));
          CHECK(relative_error(dense(fresh.view()), 0.5 * expected) < rounding<T>);
          CHECK(out.padding_untouched());
          CHECK(fresh.padding_untouched());
        };
        check(Product::AB, a, b);
        check(Product::AtB, a_transposed, b);
        check(Product::ABt, a, b_transposed);
      }
    }
  }
}

TEST_CASE("triangular systems on either side") {
  for (const Index n : {1, 2, 17, 130}) {
    const Padded<double> triangle = random_triangle(n, 2);
    const MatrixXd L = lower(dense(triangle.view()));
    for (const Index m : {1, 2, 40}) {
      const MatrixXd X = Random(3).matrix(n, m), Y = Random(4).matrix(m, n);
      const auto check = [&](const auto& solve, const MatrixXd& product, const MatrixXd& expected) {
        Padded<double> B(product);
        solve(triangle.view(), B.view());
        CHECK(relative_error(dense(B.view()), expected) < 1e-12);
        CHECK(B.padding_untouched());
      };
      const auto check_vector = [&](const auto& solve, const MatrixXd& product) {
        Matrix<double> b = as_matrix(product.col(0));
        solve(triangle.view(), b.view());
        CHECK(relative_error(dense(b.view()), X.col(0)) < 1e-12);
      };
      check_vector(solve_lower, by_hand(L, X));
      check_vector(solve_lower_transposed, by_hand(L.transpose(), X));
      check(solve_lower, by_hand(L, X), X);
      check(solve_lower_transposed, by_hand(L.transpose(), X), X);
      check(solve_lower_right, by_hand(Y, L), Y);
      check(solve_lower_transposed_right, by_hand(Y, L.transpose()), Y);
    }
  }
}

TEST_CASE("Cholesky factors from the lower triangle") {
  for (const Index n : {1, 2, 31, 130}) {
    const MatrixXd L = lower(dense(random_triangle(n, 5).view()));
    MatrixXd A = by_hand(L, L.transpose());
    for (Index i = 0; i < n; ++i) {
      for (Index j = i + 1; j < n; ++j) A(i, j) = std::numeric_limits<double>::quiet_NaN();
    }
    Padded<double> factor(A);
    CHECK(factor_cholesky(factor.view()));
    CHECK(relative_error(dense(factor.view()), L) < 1e-12);
    CHECK(factor.padding_untouched());
    for (const double bad : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
      Padded<double> broken(A);
      broken.view().row(n - 1)[n - 1] = bad;
      CHECK_FALSE(factor_cholesky(broken.view()));
    }
  }
}

TEST_CASE_TEMPLATE("blocks are copied, converted and transposed", T, float, double) {
  const MatrixXd A = Random(6).matrix(21, 37);
  const Padded<T> from(A);
  Padded<double> to(9, 20), transposed(20, 9);
  copy(block(from.view(), 4, 9, 11, 20), to.view());
  CHECK(identical(dense(to.view()), A.block(4, 11, 9, 20)));
  copy_transposed(block(from.view(), 4, 9, 11, 20), transposed.view());
  CHECK(identical(dense(transposed.view()), A.block(4, 11, 9, 20).transpose()));
  Buffer<double> memory;
  CHECK(identical(dense(as_double(row_block(from.view(), 2, 5), memory)), A.middleRows(2, 5)));
  clear(block(to.view(), 1, 3, 2, 5));
  CHECK(to.view().row(3)[6] == 0.0);
  CHECK(to.view().row(4)[6] == A(8, 17));
  CHECK(to.padding_untouched());
}
