#include "taxolearn/operators/stored.hpp"

#include "taxolearn/base/check.hpp"
#include "taxolearn/operators/dense_linear.hpp"

namespace taxolearn {

template <class T>
Stored<T>::Stored(std::unique_ptr<Operator<T>> source, const Execution& execution) : source_(std::move(source)) {
  compute(execution);
}

template <class T>
void Stored<T>::compute(const Execution& execution) {
  const Index n = source_->rows();
  Matrix<T> identity(n, n);
  for (Index i = 0; i < n; ++i) identity.row(i)[i] = T(1);
  matrix_ = Matrix<T>(n, n);
  source_->apply(identity.view(), matrix_.view(), nullptr, execution);
}

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
void Stored<T>::select(const std::vector<Index>& rows, const Execution& execution) {
  source_->select(rows, execution);
  compute(execution);
}

template class Stored<float>;
template class Stored<double>;

}  // namespace taxolearn
