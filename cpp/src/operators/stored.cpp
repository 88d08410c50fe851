#include "taxolearn/operators/stored.hpp"

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/operators/dense_linear.hpp"

namespace taxolearn {
namespace {

constexpr Index columns_together = 480;  // a few panels of the source's products

}  // namespace

template <class T>
Stored<T>::Stored(std::unique_ptr<Operator<T>> source, const Execution& execution) : source_(std::move(source)) {
  const Index n = source_->rows();
  matrix_ = Matrix<T>::uninitialised(n, n);
  const Blocks parts(n, columns_together);
  for (Index part = 0; part < parts.number(); ++part) {
    const Index first = parts.first(part), count = parts.length(part);
    Matrix<T> identity(n, count);
    for (Index k = 0; k < count; ++k) identity.row(first + k)[k] = T(1);
    source_->apply(identity.view(), block(matrix_.view(), 0, n, first, count), nullptr, execution);
  }
}

template <class T>
Stored<T>::Stored(std::unique_ptr<Operator<T>> source, Matrix<T> matrix)
    : source_(std::move(source)), matrix_(std::move(matrix)) {}

template <class T>
void Stored<T>::apply(DenseView<const T> S, DenseView<T> out, const T* shift, const Execution& execution) {
  require_shape("S", S, rows(), S.cols);
  require_shape("out", out, rows(), S.cols);
  multiply<T>(matrix_.view(), S, out, T(1), shift, execution);
}

template <class T>
void Stored<T>::apply_cross(const InputView& Xnew, DenseView<const T> S, DenseView<T> out, const Execution& execution) {
  source_->apply_cross(Xnew, S, out, execution);
}

template <class T>
void Stored<T>::bilinear_grad(DenseView<const T> E, DenseView<const T> F, double* gradient,
                              const Execution& execution) {
  source_->bilinear_grad(E, F, gradient, execution);
}

template <class T>
std::unique_ptr<Operator<T>> Stored<T>::subset(const std::vector<Index>& rows, const Execution& execution) {
  auto source = source_->subset(rows, execution);
  Matrix<T> part(source->rows(), source->rows());
  parallel_for(part.rows(), execution, [&](Index i) {
    const T* const from = matrix_.row(rows[static_cast<std::size_t>(i)]);
    for (Index j = 0; j < part.cols(); ++j) part.row(i)[j] = from[rows[static_cast<std::size_t>(j)]];
  });
  return std::make_unique<Stored>(std::move(source), std::move(part));
}

template class Stored<float>;
template class Stored<double>;

}  // namespace taxolearn
