#include <doctest/doctest.h>

#include "problems.hpp"
#include "taxolearn/operators/sparse_product.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

template <class T>
SparseMatrix<T> sparse_matrix(const Sparse<T, std::int32_t>& A) {
  return SparseMatrix<T>(std::vector<Index>(A.offsets.begin(), A.offsets.end()), A.columns, A.values);
}

template <class T>
MatrixXd dense(const SparseMatrix<T>& A, Index cols) {
  MatrixXd out = MatrixXd::Zero(A.rows(), cols);
  for (Index i = 0; i < A.rows(); ++i) {
    for (Index k = A.offsets()[i]; k < A.offsets()[i + 1]; ++k) {
      out(i, A.indices()[k]) += static_cast<double>(A.values()[k]);
    }
  }
  return out;
}

template <class T>
std::vector<T> pack(const MatrixXd& S, Index width) {
  const Padded<T> padded(S);
  std::vector<T> panel(static_cast<std::size_t>(S.rows() * width), T(5));
  pack_panel<T>(padded.view(), 0, S.cols(), width, panel.data(), one);
  return panel;
}

}  // namespace

TEST_CASE_TEMPLATE("panels are as few and as even as the registers allow", T, float, double) {
  const Index widest = panel_width<T>();
  REQUIRE(widest >= panel_granularity);
  REQUIRE(widest % panel_granularity == 0);
  for (Index m = 1; m <= 300; ++m) {
    const Index width = panel_width_for<T>(m);
    const Index panels = (m + width - 1) / width;
    CHECK(width % panel_granularity == 0);
    CHECK(width <= widest);
    CHECK(panels == (m + widest - 1) / widest);
    CHECK(width - panel_granularity < (m + panels - 1) / panels);  // no narrower width would do
  }
}

TEST_CASE_TEMPLATE("packing cuts the columns into panels and fills up with zeros", T, float, double) {
  Random random(1);
  for (const Index rows : {1, 9, 600}) {
    for (Index m = 1; m <= 70; m += rows > 9 ? 23 : 1) {
      const MatrixXd S = random.matrix(rows, m);
      const Padded<T> padded(S);
      const Index width = panel_width_for<T>(m);
      for (Index first = 0; first < m; first += width) {
        const Index columns = std::min(width, m - first);
        std::vector<T> panel(static_cast<std::size_t>(rows * width), T(5));
        pack_panel<T>(padded.view(), first, columns, width, panel.data(), two);
        MatrixXd expected = MatrixXd::Zero(rows, width);
        expected.leftCols(columns) = S.middleCols(first, columns);
        CHECK(identical(tests::dense(DenseView<T>(panel.data(), rows, width)), expected));
      }
    }
  }
}

TEST_CASE_TEMPLATE("sparse products match dense ones, for all widths and numbers of columns", T, float, double) {
  constexpr Index rows = 31;
  constexpr Index cols = 20;
  const auto A = sparse_matrix(random_sparse<T, std::int32_t>(rows, cols, 4, 2));
  const MatrixXd dense_A = dense(A, cols);
  Random random(3);
  const VectorXd diagonal = random.matrix(rows, 1);
  const std::vector<T> diagonal_values(diagonal.data(), diagonal.data() + rows);
  for (Index width = panel_granularity; width <= panel_width<T>(); width += panel_granularity) {
    for (Index columns = width - panel_granularity + 1; columns <= width; ++columns) {
      const MatrixXd S = random.matrix(cols, columns);
      const MatrixXd self = random.matrix(rows, columns);
      const VectorXd shift = random.matrix(columns, 1);
      const std::vector<T> panel = pack<T>(S, width);
      const std::vector<T> self_panel = pack<T>(self, width);
      const std::vector<T> shift_values(shift.data(), shift.data() + columns);
      for (const bool with_shift : {false, true}) {
        for (const bool with_diagonal : {false, true}) {
          Padded<T> out(rows, columns);
          ProductTarget<T> target;
          target.out = out.view();
          target.columns = columns;
          target.scale = T(0.75);
          MatrixXd expected = times(dense_A, S);
          if (with_diagonal) {
            target.diagonal = diagonal_values.data();
            target.self = self_panel.data();
            expected += diagonal.asDiagonal() * self;
          }
          expected *= 0.75;
          if (with_shift) {
            target.shift = shift_values.data();
            expected.rowwise() += shift.transpose();
          }
          A.multiply(panel.data(), width, target, one);
          REQUIRE(relative_error(tests::dense(out.view()), expected) < rounding<T>);
          REQUIRE(out.padding_untouched());
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("sparse products give the same bits on two threads", T, float, double) {
  const auto A = sparse_matrix(random_sparse<T, std::int32_t>(5000, 300, 6, 4));
  const MatrixXd S = Random(5).matrix(300, 8);
  const std::vector<T> panel = pack<T>(S, 8);
  Padded<T> serial(5000, 8), parallel(5000, 8);
  ProductTarget<T> target;
  target.columns = 8;
  target.out = serial.view();
  A.multiply(panel.data(), 8, target, one);
  target.out = parallel.view();
  A.multiply(panel.data(), 8, target, two);
  CHECK(relative_error(tests::dense(serial.view()), times(dense(A, 300), S)) < rounding<T>);
  CHECK(identical(tests::dense(serial.view()), tests::dense(parallel.view())));
}

TEST_CASE_TEMPLATE("the transpose has its entries in order of the rows", T, float, double) {
  const auto A = sparse_matrix(random_sparse<T, std::int32_t>(40, 24, 3, 6));
  const SparseMatrix<T> B = A.transposed(30, one);
  CHECK(B.rows() == 30);
  CHECK(B.nonzeros() == A.nonzeros());
  CHECK(identical(dense(B, 40), dense(A, 30).transpose()));
  for (Index j = 0; j < B.rows(); ++j) {
    CHECK(std::is_sorted(B.indices().begin() + B.offsets()[j], B.indices().begin() + B.offsets()[j + 1]));
  }
  const SparseMatrix<T> again = B.transposed(40, one);
  CHECK(again.offsets() == A.offsets());
  CHECK(again.indices() == A.indices());
  CHECK(again.values() == A.values());
}

TEST_CASE_TEMPLATE("the transpose is the same on two threads", T, float, double) {
  const auto A = sparse_matrix(random_sparse<T, std::int32_t>(5000, 300, 6, 7));
  const SparseMatrix<T> serial = A.transposed(300, one);
  const SparseMatrix<T> parallel = A.transposed(300, two);
  CHECK(identical(dense(serial, 5000), dense(A, 300).transpose()));
  CHECK(serial.offsets() == parallel.offsets());
  CHECK(serial.indices() == parallel.indices());
  CHECK(serial.values() == parallel.values());
}

TEST_CASE("a matrix without rows or without entries") {
  const SparseMatrix<float> none({0}, {}, {});
  CHECK(none.rows() == 0);
  none.multiply(nullptr, 8, ProductTarget<float>(), two);
  const SparseMatrix<float> empty({0, 0, 0}, {}, {});
  Padded<float> out(MatrixXd::Constant(2, 8, 3.0));
  ProductTarget<float> target;
  target.out = out.view();
  target.columns = 8;
  empty.multiply(nullptr, 8, target, two);
  CHECK(identical(tests::dense(out.view()), MatrixXd::Zero(2, 8)));
  CHECK(none.transposed(3, two).rows() == 3);
  CHECK(empty.transposed(3, two).rows() == 3);
}
