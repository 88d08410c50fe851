#include "taxolearn/operators/gram.hpp"

#include <algorithm>
#include <utility>

#include "taxolearn/base/check.hpp"
#include "taxolearn/operators/subset.hpp"
#include "taxolearn/operators/tiled.hpp"

namespace taxolearn {

template <class T>
Gram<T>::Gram(std::shared_ptr<const Kernel> kernel, InputRows rows, std::shared_ptr<PackedSymmetric<T>> store, Index l)
    : kernel_(std::move(kernel)), rows_(std::move(rows)), store_(std::move(store)), l_(l) {}

template <class T>
void Gram<T>::apply(DenseView<const T> S, DenseView<T> out, const T* shift, const Execution& execution) {
  if (rows_.selected.empty()) {
    store_->restore(execution);
  } else {
    store_->arrange(rows_.selected, execution);
  }
  store_->multiply(l_, S, out, shift, execution);
}

template <class T>
void Gram<T>::apply_cross(const InputView& Xnew, DenseView<const T> S, DenseView<T> out, const Execution& execution) {
  Tiled<T>(kernel_, rows_, execution).apply_cross(Xnew, S, out, execution);
}

template <class T>
void Gram<T>::bilinear_grad(DenseView<const T> E, DenseView<const T> F, double* gradient, const Execution& execution) {
  Tiled<T>(kernel_, rows_, execution).bilinear_grad(E, F, gradient, execution);
}

template <class T>
std::unique_ptr<Operator<T>> Gram<T>::subset(const std::vector<Index>& rows, const Execution&) {
  return std::make_unique<Gram>(kernel_, subset_of(rows_, rows), store_, l_);
}

template <class T>
std::vector<std::unique_ptr<Operator<T>>> make_gram(const std::vector<std::shared_ptr<const Kernel>>& kernels,
                                                    const InputView& X, const Execution& execution) {
  require(!kernels.empty(), "kernels is empty, expected at least one kernel");
  require(input_rows(X) > 0, "X has no rows, expected at least one");
  const auto store = std::make_shared<PackedSymmetric<T>>(input_rows(X), static_cast<Index>(kernels.size()));
  const InputRows all{X, {}};
  std::vector<std::unique_ptr<Operator<T>>> operators;
  for (const std::shared_ptr<const Kernel>& kernel : kernels) {
    const auto l = static_cast<Index>(operators.size());
    store->fill(l, *kernel->double_entries(all, all, execution), execution);
    operators.push_back(std::make_unique<Gram<T>>(kernel, all, store, l));
  }
  return operators;
}

double gram_bytes(Index n, Index count, std::size_t element) { return packed_symmetric_bytes(n, count, element); }

#define TAXOLEARN_INSTANTIATE(T)                                                                                  \
  template class Gram<T>;                                                                                         \
  template std::vector<std::unique_ptr<Operator<T>>> make_gram(const std::vector<std::shared_ptr<const Kernel>>&, \
                                                               const InputView&, const Execution&);
TAXOLEARN_INSTANTIATE(float)
TAXOLEARN_INSTANTIATE(double)
#undef TAXOLEARN_INSTANTIATE

}  // namespace taxolearn
