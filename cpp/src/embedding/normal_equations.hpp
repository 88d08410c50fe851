// H = X^T D X + ridge for centred inputs, by products with the inputs as they are.
#pragma once

#include <memory>
#include <vector>

#include "taxolearn/data/input.hpp"
#include "taxolearn/operators/linear.hpp"
#include "taxolearn/solver/block_cg.hpp"

namespace taxolearn {

template <class T>
class NormalEquations {
 public:
  /// `weights` are those of all rows, and not negative.
  NormalEquations(const InputView& X, std::vector<double> weights, bool center, const Execution& execution);

  Index rows() const { return static_cast<Index>(weights_.size()); }
  Index features() const { return static_cast<Index>(mean_.size()); }
  const std::vector<double>& weights() const { return weights_; }
  const std::vector<double>& mean() const { return mean_; }
  double total_weight() const { return total_; }
  bool centered() const { return center_; }

  /// tr(X^T D X) / d, the unit of ridges; 1 where X is constant.
  double unit() const { return unit_; }

  /// Other weights for the same rows.
  void set_weights(std::vector<double> weights);

  /// out = (X - mean) W.
  void expand(DenseView<const T> W, DenseView<T> out, const Execution& execution);

  /// out = (X - mean)^T D E; E is overwritten by D E.
  void project(DenseView<T> E, DenseView<T> out, const Execution& execution);

  /// out = H W.
  void apply(DenseView<const T> W, double ridge, DenseView<T> out, const Execution& execution);

  /// H with this ridge, for conjugate gradients. Looks at this object.
  BlockSystem<T> system(double ridge, const Execution& execution);

 private:
  InputView X_;
  bool center_;
  std::unique_ptr<FeatureOperator<T>> operator_;
  std::vector<double> weights_, mean_, diagonal_;  // diagonal of X^T D X
  double total_ = 0.0, unit_ = 1.0;
  Buffer<T> expanded_;
};

}  // namespace taxolearn
