// variance * X X^T for dense X by matrix products. linear.hpp says when it is chosen.
#pragma once

#include "taxolearn/operators/linear.hpp"

namespace taxolearn {

/// out = scale A S + 1 shift^T in blocks of rows of A; shift may be null.
template <class T>
void multiply(DenseView<const T> A, DenseView<const T> S, DenseView<T> out, T scale, const T* shift,
              const Execution& execution);

/// out += scale A S.
template <class T>
void multiply_add(DenseView<const T> A, DenseView<const T> S, DenseView<T> out, T scale, const Execution& execution);

template <class T>
class DenseLinear final : public Linear<T> {
 public:
  DenseLinear(InputRows rows, double variance, const Execution& execution);

  void apply(DenseView<const T> S, DenseView<T> out, const T* shift, const Execution& execution) override;
  void project(DenseView<const T> S, DenseView<T> W, const Execution& execution) override;
  void expand(DenseView<const T> W, DenseView<T> out, const T* shift, const Execution& execution) override;
  void add_apply(DenseView<const T> S, DenseView<T> out, const Execution& execution) override;
  void add_expand(DenseView<const T> W, DenseView<T> out, const Execution& execution) override;
  std::unique_ptr<Operator<T>> subset(const std::vector<Index>& rows, const Execution& execution) override;
  std::string algorithm() const override { return "dense"; }

 private:
  void project_scaled(DenseView<const T> S, T scale, DenseView<T> W, const Execution& execution);
  DenseView<const T> projected(DenseView<const T> S, const Execution& execution);  ///< X^T S

  Buffer<T> copy_;          ///< the rows, where the inputs cannot be used in place
  DenseView<const T> own_;  ///< the rows in precision T
  Buffer<T> weights_;       ///< features x m, between the two products
  Buffer<T> partial_;       ///< sums over segments of rows
};

}  // namespace taxolearn
