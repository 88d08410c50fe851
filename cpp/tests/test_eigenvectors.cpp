#include <doctest/doctest.h>

#include "problems.hpp"
#include "taxolearn/base/eigenvectors.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

TEST_CASE("eigenvectors are orthonormal columns that rebuild a matrix, of which the lower triangle counts") {
  for (const Index size : {1, 2, 7, 40}) {
    const MatrixXd B = Random(1).matrix(size, size);
    const MatrixXd A = times(B, B.transpose());
    Padded<double> memory(MatrixXd(A.triangularView<Eigen::Lower>()));  // padded rows: there is a stride
    const std::vector<double> values = symmetric_eigenvectors(memory.view());
    const MatrixXd V = dense(memory.view());
    const VectorXd lambda = Eigen::Map<const VectorXd>(values.data(), size);
    CHECK(relative_error(times(V.transpose(), V), MatrixXd::Identity(size, size)) < 1e-13);
    CHECK(relative_error(times(V * lambda.asDiagonal(), V.transpose()), A) < 1e-13);
    CHECK(std::is_sorted(values.begin(), values.end()));
  }
}
