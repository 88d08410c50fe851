// The contract of a kernel: everything the solvers ever ask of M (n x n), the kernel matrix of the inputs.
//
// A new kernel implements these functions and touches no solver. Operators know inputs, never labels.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"
#include "taxolearn/data/input.hpp"

namespace taxolearn {

/// T is the precision of the products (float or double).
template <class T>
class Operator {
 public:
  virtual ~Operator() = default;

  /// n: rows of the inputs, or of a subset of them.
  virtual Index rows() const = 0;

  /// out = M S + 1 shift^T, with S and out (n x m), any m; shift (length m) may be null. S and out must not
  /// overlap.
  virtual void apply(DenseView<const T> S, DenseView<T> out, const T* shift, const Execution& execution) = 0;

  /// out = M(Xnew, X) S, with S (n x m) and out (rows of Xnew x m): the product that predicts.
  virtual void apply_cross(const InputView& Xnew, DenseView<const T> S, DenseView<T> out,
                           const Execution& execution) = 0;

  /// out[i] = M_ii.
  virtual void diag(double* out) const = 0;

  /// Number of parameters theta, all on log scale.
  virtual Index parameters() const = 0;

  /// gradient[k] = d/dtheta_k of tr(E^T M(theta) F), for E and F (n x m); all parameters in one pass.
  virtual void bilinear_grad(DenseView<const T> E, DenseView<const T> F, double* gradient,
                             const Execution& execution) = 0;

  /// The operator of the given ones of these rows, in this order; an index may occur once. Both can be used after that,
  /// in turn, and neither needs the other. Whatever memory they share, products with a subset run on flat memory
  /// ("covariance shuffling", Seeger 2008, D.2).
  virtual std::unique_ptr<Operator<T>> subset(const std::vector<Index>& rows, const Execution& execution) = 0;

  /// Name of the algorithm the operator chose for its products.
  virtual std::string algorithm() const = 0;
};

/// A kernel with an explicit feature map of moderate size: M = Z Z^T with Z (n x features).
template <class T>
class FeatureOperator : public Operator<T> {
 public:
  virtual Index features() const = 0;

  /// W = Z^T S, with W (features x m).
  virtual void project(DenseView<const T> S, DenseView<T> W, const Execution& execution) = 0;

  /// out = Z W + 1 shift^T; shift may be null.
  virtual void expand(DenseView<const T> W, DenseView<T> out, const T* shift, const Execution& execution) = 0;
};

}  // namespace taxolearn
