// Multinomial logistic loss f_i(u_i) = s_i (logsumexp(u_i) - y_i . u_i) with weights s_i >= 0 and targets y_i
// that are distributions over the classes: one class each, or soft.
//
// Residual: s_i (pi_i - y_i). Hessian root (Seeger 2008, 5.1): V_i = sqrt(s_i) (I - pi_i 1^T)
// diag(pi_i)^{1/2}.
#pragma once

#include <cstdint>
#include <utility>

#include "taxolearn/likelihood/likelihood.hpp"
#include "taxolearn/likelihood/targets.hpp"

namespace taxolearn {

struct Scales;  // largest predictors and sums of exponentials of some rows

/// Replaces each of count rows of length classes by its softmax.
void softmax_rows(Index count, Index classes, double* u);

/// Replaces each row by its log softmax.
void log_softmax_rows(Index count, Index classes, double* u);

class Softmax final : public Likelihood {
 public:
  /// One class per row; weights (length n) may be null for all ones. Labels, targets and weights must outlive it.
  Softmax(const std::int32_t* labels, Index rows, Index classes, const double* weights);

  /// Soft targets (n x C): rows are nonnegative and sum to one.
  Softmax(DenseView<const double> targets, const double* weights);

  Index rows() const override { return targets_.rows(); }
  Index outputs() const override { return classes_; }
  Link link() const override { return Link::softmax; }
  double residual(Index first, Index count, double* u) const override;
  LinePoint line(Index first, Index count, double* u, const double* du) const override;
  double single_residual(Index first, Index count, const double* u, float* out) const override;
  LinePoint single_line(Index first, Index count, const double* u, double step, const float* du) const override;
  void curvature(Index first, Index count, double* u) const override;
  void root(Index first, Index count, const double* probabilities, double* x) const override;
  void root_transposed(Index first, Index count, const double* probabilities, double* x) const override;
  void hessian(Index first, Index count, const double* probabilities, double* x) const override;
  LinePoint hessian_line(Index first, Index count, const double* probabilities, const double* u,
                         const double* du) const override;
  void root_diagonal(Index first, Index count, const double* probabilities, double* out) const override;
  void add_hessian(Index first, Index count, const double* probabilities, double* out) const override;
  HessianStructure hessian_structure() const override { return HessianStructure::diagonal_minus_rank_one; }
  void hessian_diagonal(Index first, Index count, const double* probabilities, double* out) const override;
  std::unique_ptr<Likelihood> subset(const std::vector<Index>& rows, const std::vector<double>& factors) const override;

 private:
  explicit Softmax(Targets targets) : targets_(std::move(targets)), classes_(targets_.outputs()) {}

  double weight(Index i) const { return targets_.weight(i); }

  /// Adds what rows have beyond the targets' part; moments_of(k) are those of a row's exponentials.
  template <class MomentsOf>
  void add_line(Index first, Index count, Scales& scales, LinePoint& point, const MomentsOf& moments_of) const;

  Targets targets_;
  Index classes_;
};

}  // namespace taxolearn
