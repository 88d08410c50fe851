#include "taxolearn/base/eigenvectors.hpp"

#include <Eigen/Eigenvalues>

#include "taxolearn/base/matrix_block.hpp"

namespace taxolearn {

std::vector<double> symmetric_eigenvectors(DenseView<double> A) {
  // The solver works on columns.
  Eigen::MatrixXd matrix(A.rows, A.cols);
  copy_transposed(A, DenseView<double>(matrix.data(), A.rows, A.cols));
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(matrix);
  copy_transposed(DenseView<const double>(solver.eigenvectors().data(), A.rows, A.cols), A);
  return {solver.eigenvalues().data(), solver.eigenvalues().data() + A.rows};
}

}  // namespace taxolearn
