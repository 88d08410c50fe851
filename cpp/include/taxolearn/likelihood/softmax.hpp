// Multinomial logistic loss f_i(u_i) = s_i (logsumexp(u_i) - y_i . u_i) with weights s_i >= 0 and targets y_i
// that are distributions over the classes: one class each, or soft.
//
// Residual: s_i (pi_i - y_i). Hessian root (Seeger 2008, 5.1): V_i = sqrt(s_i) (I - pi_i 1^T)
// diag(pi_i)^{1/2}.
#pragma once

#include <cstdint>

#include "taxolearn/likelihood/likelihood.hpp"

namespace taxolearn {

struct Scales;  // largest predictors and sums of exponentials of some rows

/// Replaces each of count rows of length classes by its softmax.
void softmax_rows(Index count, Index classes, double* u);

/// Replaces each row by its log softmax.
void log_softmax_rows(Index count, Index classes, double* u);

/// Views: labels or targets, and weights, must outlive the object, unless it was gathered from another one.
class Softmax final : public Likelihood {
 public:
  /// One class per row; weights (length n) may be null for all ones.
  Softmax(const std::int32_t* labels, Index rows, Index classes, const double* weights);

  /// Soft targets (n x C): rows are nonnegative and sum to one.
  Softmax(DenseView<const double> targets, const double* weights);

  Index rows() const override { return rows_; }
  Index classes() const override { return classes_; }
  double row_weight(Index i) const override { return weight(i); }
  double residual(Index first, Index count, double* u) const override;
  LinePoint line(Index first, Index count, double* u, const double* du) const override;
  double single_residual(Index first, Index count, const double* u, float* out) const override;
  LinePoint single_line(Index first, Index count, const double* u, double step, const float* du) const override;
  void curve(Index first, Index count, double* u) const override;
  void root(Index first, Index count, const double* state, double* x) const override;
  void root_transposed(Index first, Index count, const double* state, double* x) const override;
  void hessian(Index first, Index count, const double* state, double* x) const override;
  LinePoint hessian_line(Index first, Index count, const double* state, const double* u,
                         const double* du) const override;
  void root_diagonal(Index first, Index count, const double* state, double* out) const override;
  void add_hessian(Index first, Index count, const double* state, double* out) const override;
  std::unique_ptr<Likelihood> gather(const std::vector<Index>& rows, const std::vector<double>& factors) const override;

 private:
  double weight(Index i) const { return weights_ == nullptr ? 1.0 : weights_[i]; }
  template <class T>
  double target_dot(Index i, const T* x) const;

  /// Adds what rows have beyond the targets' part; moments_of(k) are those of a row's exponentials.
  template <class MomentsOf>
  void add_line(Index first, Index count, Scales& scales, LinePoint& point, const MomentsOf& moments_of) const;

  Softmax() = default;

  const std::int32_t* labels_ = nullptr;
  DenseView<const double> targets_;
  const double* weights_ = nullptr;
  Index rows_ = 0;
  Index classes_ = 0;
  std::vector<std::int32_t> own_labels_;  ///< of a gathered likelihood, like the next two
  Matrix<double> own_targets_;
  std::vector<double> own_weights_;
};

}  // namespace taxolearn
