// The linear kernel on inputs in blocks, M = variance sum_b f_b^2 X_b X_b^T: the sum of the operators of its blocks, each
// with the algorithm that suits it. The features are those of all blocks, side by side.
//
// The parameters theta are log (f_b^2), one per block. Factors can be changed without arranging the inputs anew.
#pragma once

#include <memory>
#include <vector>

#include "taxolearn/operators/linear.hpp"

namespace taxolearn {

/// Holds a view: the inputs must outlive it.
template <class T>
class BlockLinear final : public FeatureOperator<T> {
 public:
  BlockLinear(InputRows rows, double variance, FeatureOrder order, const Execution& execution);

  /// Takes the factors of other inputs in place of those it has. The blocks must be the same.
  void set_factors(const InputView& X);

  Index rows() const override { return rows_.count(); }
  Index features() const override { return input_features(rows_.X); }
  void apply(DenseView<const T> S, DenseView<T> out, const T* shift, const Execution& execution) override;
  void apply_cross(const InputView& Xnew, DenseView<const T> S, DenseView<T> out, const Execution& execution) override;
  void diag(double* out) const override;
  Index parameters() const override { return static_cast<Index>(parts_.size()); }
  void bilinear_grad(DenseView<const T> E, DenseView<const T> F, double* gradient, const Execution& execution) override;
  std::unique_ptr<Operator<T>> subset(const std::vector<Index>& rows, const Execution& execution) override;
  std::string algorithm() const override { return "blocks"; }
  void project(DenseView<const T> S, DenseView<T> W, const Execution& execution) override;
  void expand(DenseView<const T> W, DenseView<T> out, const T* shift, const Execution& execution) override;

 private:
  const std::vector<InputBlock>& blocks() const { return *input_blocks(rows_.X); }

  InputRows rows_;
  double variance_;
  FeatureOrder order_;
  std::vector<std::unique_ptr<Linear<T>>> parts_;
};

}  // namespace taxolearn
