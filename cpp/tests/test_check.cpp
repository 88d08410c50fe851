#include <doctest/doctest.h>

#include "problems.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

TEST_CASE("a view finds its elements by the stride") {
  const std::vector<int> numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const DenseView<const int> packed(numbers.data(), 3, 4);
  CHECK(packed.stride == 4);
  CHECK(packed.row(2)[3] == 11);
  const DenseView<const int> strided(numbers.data() + 1, 3, 2, 4);
  CHECK(strided.row(0)[0] == 1);
  CHECK(strided.row(2)[1] == 10);
}

TEST_CASE("a matrix starts at zero, row-major, on a cache line") {
  Matrix<float> matrix(3, 5);
  CHECK(matrix.size() == 15);
  CHECK(reinterpret_cast<std::uintptr_t>(matrix.data()) % 64 == 0);
  for (Index k = 0; k < matrix.size(); ++k) CHECK(matrix.data()[k] == 0.0f);
  matrix.row(2)[1] = 7.0f;
  CHECK(matrix.data()[11] == 7.0f);
  CHECK(matrix.view().row(2)[1] == 7.0f);
  CHECK(Matrix<double>().size() == 0);
  CHECK(Matrix<double>().view().rows == 0);
}

TEST_CASE("require puts its parts together, and only when the condition fails") {
  CHECK(rejection([] { require(true, "never"); }).empty());
  CHECK(rejection([] { require(false, "tol must be positive, got ", -1.5); }) == "tol must be positive, got -1.5");
}

TEST_CASE("an error about a shape names the argument and all dimensions") {
  const DenseView<const double> view(nullptr, 2, 3);
  CHECK(shape(view) == "(2, 3)");
  CHECK(rejection([&] { require_shape("S", view, 2, 3); }).empty());
  CHECK(rejection([&] { require_shape("S", view, 4, 3); }) == "S has shape (2, 3), expected (4, 3)");
  CHECK(rejection([&] { require_shape("S", view, 2, 5); }) == "S has shape (2, 3), expected (2, 5)");
}

TEST_CASE_TEMPLATE("compressed sparse rows are checked", View, SparseView<float, std::int32_t>,
                   SparseView<float, std::int64_t>, SparseView<double, std::int32_t>,
                   SparseView<double, std::int64_t>) {
  using V = std::remove_const_t<std::remove_pointer_t<decltype(View::values)>>;
  using I = std::remove_const_t<std::remove_pointer_t<decltype(View::columns)>>;
  Sparse<V, I> X;
  X.rows = 3;
  X.cols = 4;
  X.values = {1, 2, 3, 4};
  X.columns = {1, 1, 3, 0};
  X.offsets = {0, 3, 3, 4};
  const auto message = [&] { return rejection([&] { require_valid("X", X.view()); }); };

  SUBCASE("duplicates, empty rows and the last column are valid") {
    CHECK(message().empty());
    CHECK(X.view().nonzeros() == 4);
  }
  SUBCASE("no rows") {
    X.rows = 0;
    CHECK(message().empty());
    CHECK(X.view().nonzeros() == 0);
  }
  SUBCASE("generated problems are valid") {
    X = random_sparse<V, I>(50, 20, 3, 1);
    CHECK(message().empty());
  }
  SUBCASE("negative shape") {
    X.cols = -1;
    CHECK(message() == "X has shape (3, -1)");
  }
  SUBCASE("offsets that do not start at zero") {
    X.offsets = {1, 3, 3, 4};
    CHECK(message() == "X: indptr starts at 1, expected 0");
  }
  SUBCASE("falling offsets") {
    X.offsets = {0, 3, 2, 4};
    CHECK(message() == "X: indptr falls from 3 to 2 at row 1");
  }
  SUBCASE("falling offsets are found before entries past the end are read") {
    X.offsets = {0, 50000000, 3, 4};
    CHECK(message() == "X: indptr falls from 50000000 to 3 at row 1");
  }
  SUBCASE("column too large") {
    X.columns[2] = 4;
    CHECK(message() == "X: column index 4 in row 0 is out of range for shape (3, 4)");
  }
  SUBCASE("column negative") {
    X.columns[3] = -1;
    CHECK(message() == "X: column index -1 in row 2 is out of range for shape (3, 4)");
  }
  SUBCASE("columns not sorted") {
    X.columns = {1, 3, 2, 0};
    CHECK(message() == "X: column indices of row 0 are not sorted (2 follows 3); call sort_indices() first");
  }
}
