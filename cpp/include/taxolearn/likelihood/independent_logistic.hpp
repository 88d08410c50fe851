// Logistic loss of each output by itself, f_i(u_i) = s_i sum_c (log(1 + exp(u_ic)) - y_ic u_ic), with weights s_i >= 0
// and targets y_ic in [0, 1]: any number of outputs may be right at a row. Where y_ic is 0 or 1 that is
// s_i log(1 + exp(-+u_ic)).
//
// Residual: s_i (p_ic - y_ic), with p = 1 / (1 + exp(-u)). The Hessian is diagonal, s_i p_ic (1 - p_ic).
#pragma once

#include <cstdint>
#include <utility>

#include "taxolearn/likelihood/likelihood.hpp"
#include "taxolearn/likelihood/targets.hpp"

namespace taxolearn {

class IndependentLogistic final : public Likelihood {
 public:
  /// One label per row, one output against the rest; weights (length n) may be null for all ones. Labels, targets and
  /// weights must outlive it.
  IndependentLogistic(const std::int32_t* labels, Index rows, Index outputs, const double* weights);

  /// Any number of labels per row.
  IndependentLogistic(const LabelSets& sets, Index outputs, const double* weights);

  /// Soft targets (n x C) in [0, 1].
  IndependentLogistic(DenseView<const double> targets, const double* weights);

  Index rows() const override { return targets_.rows(); }
  Index outputs() const override { return outputs_; }
  Link link() const override { return Link::logistic; }
  double residual(Index first, Index count, double* u) const override;
  LinePoint line(Index first, Index count, double* u, const double* du) const override;
  double single_residual(Index first, Index count, const double* u, float* out) const override;
  LinePoint single_line(Index first, Index count, const double* u, double step, const float* du) const override;

  /// Replaces u by the diagonal of the Hessian, which is the curvature that all others take.
  void curvature(Index first, Index count, double* u) const override;
  void root(Index first, Index count, const double* diagonal, double* x) const override;
  void root_transposed(Index first, Index count, const double* diagonal, double* x) const override;
  void hessian(Index first, Index count, const double* diagonal, double* x) const override;
  LinePoint hessian_line(Index first, Index count, const double* diagonal, const double* u,
                         const double* du) const override;
  void root_diagonal(Index first, Index count, const double* diagonal, double* out) const override;
  void add_hessian(Index first, Index count, const double* diagonal, double* out) const override;
  HessianStructure hessian_structure() const override { return HessianStructure::diagonal; }
  void hessian_diagonal(Index first, Index count, const double* diagonal, double* out) const override;
  std::unique_ptr<Likelihood> subset(const std::vector<Index>& rows, const std::vector<double>& factors) const override;

 private:
  explicit IndependentLogistic(Targets targets) : targets_(std::move(targets)), outputs_(targets_.outputs()) {}

  double weight(Index i) const { return targets_.weight(i); }

  /// Changes the sign of what belongs to labels: their loss is log(1 + exp(v)) of v = -u, that of all others of v = u.
  template <class T>
  void flip_labels(Index first, Index count, T* x) const;

  /// Calls body(row, place, length) for stretches of a block whose elements have the weight of that row, as long as
  /// they can be: short loops are slow.
  template <class Body>
  void for_stretches(Index first, Index count, const Body& body) const;

  /// The sum of s log(1 + exp(v)) less that of s max(v, 0), given e = exp(-|v|).
  template <class T>
  double log_terms(Index first, Index count, const T* e) const;

  /// Replaces v, in which labels are flipped, by s (p - y), in which they are not, given e = exp(-|v|).
  template <class T>
  void to_residuals(Index first, Index count, const T* e, T* v) const;

  /// Adds log_terms, and the sums of s p du and s p (1 - p) du^2, with p = 1 / (1 + exp(-v)), labels flipped in v but
  /// not in du.
  template <class T>
  void add_line(Index first, Index count, const T* v, const T* e, const T* du, LinePoint& point) const;

  Targets targets_;
  Index outputs_;
};

}  // namespace taxolearn
