#include "taxolearn/base/product.hpp"

#include <Eigen/Core>

#include "taxolearn/base/matrix_block.hpp"

namespace taxolearn {
namespace {

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
auto as_eigen(const DenseView<const T>& A) {
  return Eigen::Map<const RowMajor<T>, Eigen::Unaligned, Eigen::OuterStride<>>(A.data, A.rows, A.cols,
                                                                               Eigen::OuterStride<>(A.stride));
}

template <class T>
void add(Product form, const DenseView<const T>& A, const DenseView<const T>& B, const DenseView<T>& out, T scale) {
  Eigen::Map<RowMajor<T>, Eigen::Unaligned, Eigen::OuterStride<>> result(out.data, out.rows, out.cols,
                                                                         Eigen::OuterStride<>(out.stride));
  switch (form) {
    case Product::AB:
      result.noalias() += scale * (as_eigen(A) * as_eigen(B));
      break;
    case Product::AtB:
      result.noalias() += scale * (as_eigen(A).transpose() * as_eigen(B));
      break;
    case Product::ABt:
      result.noalias() += scale * (as_eigen(A) * as_eigen(B).transpose());
      break;
  }
}

}  // namespace

void add_product(Product form, DenseView<const float> A, DenseView<const float> B, DenseView<float> out, float scale) {
  add(form, A, B, out, scale);
}

void add_product(Product form, DenseView<const double> A, DenseView<const double> B, DenseView<double> out,
                 double scale) {
  add(form, A, B, out, scale);
}

void set_product(Product form, DenseView<const float> A, DenseView<const float> B, DenseView<float> out, float scale) {
  clear(out);
  add(form, A, B, out, scale);
}

void set_product(Product form, DenseView<const double> A, DenseView<const double> B, DenseView<double> out,
                 double scale) {
  clear(out);
  add(form, A, B, out, scale);
}

}  // namespace taxolearn
