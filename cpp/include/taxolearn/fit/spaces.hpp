// The two search spaces of kernel logistic regression: dual coefficients and primal weights.
//
// Both keep the point in double precision and everything that enters or leaves a kernel product in precision
// T. What differs is what a vector is; what they share, the predictors u (n x C) and the work on them, is in
// PredictorSpace.
#pragma once

#include <memory>
#include <vector>

#include "taxolearn/fit/kernel_product.hpp"
#include "taxolearn/fit/preconditioner.hpp"
#include "taxolearn/fit/problem.hpp"
#include "taxolearn/fit/result.hpp"
#include "taxolearn/fit/subspace_preconditioner.hpp"
#include "taxolearn/operators/operator.hpp"
#include "taxolearn/solver/space.hpp"

namespace taxolearn {

/// Search space over predictors; owns u and knows how to step along a direction whose image is known.
template <class T>
class PredictorSpace : public SearchSpace {
 public:
  LineValue line(double step) override;
  const Matrix<double>& predictors() const { return u_; }

 protected:
  PredictorSpace(const Problem& problem, const Execution& execution, FitResult& result);

  virtual const T* image() const = 0;  ///< of the direction, n x C

  /// The factor of the point, from 0 to 2, at which the objective is least. The point must be the direction.
  double best_factor(double square);

  /// Moves the predictors by step times the image of the direction, and writes the residuals there to out (n x C),
  /// which may be that image, block by block: body(first element, number of elements, residuals). Returns the sum of
  /// the losses and of what the body returns.
  template <class Body>
  LinePoint residuals(double step, T* out, const Body& body);

  const Problem& problem_;
  Execution execution_;
  FitResult& result_;
  Matrix<double> u_;
  double point_square_ = 0.0;     ///< |x|^2
  double point_direction_ = 0.0;  ///< <x, direction>
  double direction_square_ = 0.0;
};

template <class T>
class CoefficientSpace final : public PredictorSpace<T> {
 public:
  CoefficientSpace(const Problem& problem, int slots, const Execution& execution, FitResult& result);

  /// With operators that belong to somebody else, one per kernel of the problem. They and the likelihood are those of
  /// the given rows of X; none: of all.
  CoefficientSpace(const Problem& problem, std::vector<Operator<T>*> operators, int slots, const Execution& execution,
                   FitResult& result, const std::vector<Index>& rows = {});

  /// Moves to the given coefficients (n x C): one product.
  void start(const Matrix<double>& coefficients);
  void start_at_zero();

  /// Scales the point so that the objective is least: no product.
  void rescale();
  Matrix<double>& coefficients() { return alpha_; }

  double advance(double step, int slot) override;
  std::vector<double> inner(int slot, const std::vector<int>& others) override;
  void combine(const std::vector<double>& coefficients, int into) override;
  bool has_preconditioner() const override { return preconditioner_ != nullptr; }
  void renew_preconditioner() override;
  void solve_preconditioner(const std::vector<double>& coefficients, int into) override;

  /// out = K S, both n x C: one product. Leaves S and K S, rounded, in the last of the slots that were asked for.
  void kernel(const double* S, double* out);

  /// A slot's coefficients and their image.
  Buffer<T>& slot(int k) { return coefficients_[static_cast<std::size_t>(k)]; }
  Buffer<T>& slot_image(int k) { return images_[static_cast<std::size_t>(k)]; }

  /// Makes the vector in a slot, written from outside with its image, the direction.
  void use_direction(int slot);

  /// The diagonal of K, n x C.
  Matrix<double> kernel_diagonal() const;

 protected:
  const T* image() const override { return images_[static_cast<std::size_t>(direction_)].data(); }

 private:
  void multiply(const T* S, T* out);
  void set_up(std::vector<Operator<T>*> operators);

  std::unique_ptr<Operator<T>> linear_;  ///< where the kernel is linear
  std::unique_ptr<KernelProduct<T>> product_;
  std::unique_ptr<SubspacePreconditioner<T>> preconditioner_;
  Matrix<double> alpha_;
  std::vector<Buffer<T>> coefficients_;  ///< per slot, n x C
  std::vector<Buffer<T>> images_;        ///< K times these
  int scratch_;                          ///< of kernel(): the last slot that was asked for
  int direction_ = 0;
};

template <class T>
class WeightSpace final : public PredictorSpace<T> {
 public:
  WeightSpace(const Problem& problem, int slots, const Execution& execution, FitResult& result);

  /// With an operator of variance 1 that belongs to somebody else.
  WeightSpace(const Problem& problem, FeatureOperator<T>& features, int slots, const Execution& execution,
              FitResult& result);

  /// Moves to the given weights, W (d x columns of R) followed by b (C): half a product.
  void start(Buffer<double>&& weights);
  void start_at_zero();

  /// Scales the point so that the objective is least: no product.
  void rescale();
  Buffer<double>& weights() { return W_; }

  double advance(double step, int slot) override;
  std::vector<double> inner(int slot, const std::vector<int>& others) override;
  void combine(const std::vector<double>& coefficients, int into) override;
  bool has_preconditioner() const override { return preconditioner_ != nullptr; }
  void renew_preconditioner() override;
  void solve_preconditioner(const std::vector<double>& coefficients, int into) override;

 protected:
  const T* image() const override { return image_.data(); }

 private:
  void project(const T* S, double* out);  ///< weights from predictors: the adjoint of expand
  void expand(const double* W, T* out);   ///< predictors (n x C) of weights
  void set_up();

  std::unique_ptr<FeatureOperator<T>> own_;
  FeatureOperator<T>* operator_;
  Buffer<double> W_;                   ///< W and b
  std::vector<Buffer<double>> slots_;  ///< as long as W_
  Buffer<T> image_;                    ///< n x C: of the direction; between directions, the residual
  Buffer<T> feature_scratch_;          ///< d x C
  std::unique_ptr<KroneckerPreconditioner> preconditioner_;
  int direction_ = 0;
};

}  // namespace taxolearn
