// Fits and systems of some folds: what an evaluation consists of.
#pragma once

#include "taxolearn/fit/spaces.hpp"
#include "taxolearn/select/criterion.hpp"

namespace taxolearn {

/// Hands out the points of the last evaluation one after the other, and records the new ones.
class StateTape {
 public:
  StateTape(const Buffer<float>& before, Buffer<float>& after) : before_(before), after_(after) {}

  /// Where the next point, of this size, starts, or the one so many points later; empty where nothing is known.
  Buffer<double> next(Index size, Index later = 0) const {
    const Index from = static_cast<Index>(after_.size()) + later * size;
    if (static_cast<Index>(before_.size()) < from + size) return {};
    return Buffer<double>(before_.begin() + from, before_.begin() + from + size);
  }

  void append(const Buffer<double>& point) {
    after_.reserve(after_.size() + point.size());
    for (const double value : point) after_.push_back(static_cast<float>(value));
  }

 private:
  const Buffer<float>& before_;
  Buffer<float>& after_;
};

/// The fit and the system of one fold: points, and what they add to the criterion.
struct FoldOutcome {
  Buffer<double> fit, adjoint;
  Buffer<double> alpha, f;  ///< coefficients for the gradient; empty: the points serve
  double value = 0.0;
  double plain_value = 0.0;
  double temperature_gradient = 0.0;
  double gap = 0.0;
  double adjoint_gap = 0.0;
  bool converged = true;
  int iterations = 0;
  double fit_seconds = 0.0;
  double adjoint_seconds = 0.0;
  FitResult counters;

  // The two sides of the gradient.
  const Buffer<double>& left() const { return alpha.empty() ? fit : alpha; }
  const Buffer<double>& right() const { return f.empty() ? adjoint : f; }
};

/// The rows that a fold is trained on and those that it holds out, with operators of the first and of both.
template <class T>
struct FoldRows {
  std::vector<Index> in, held_out;           ///< rows of the inputs
  std::vector<Index> places_in, places_out;  ///< of these among the rows of `whole`
  std::vector<Operator<T>*> part;            ///< of the rows trained on, one per kernel
  std::vector<Operator<T>*> whole;           ///< of all rows
  Operators<T> views;                        ///< those that belong to nobody else
};

/// One evaluation with products in precision T, fold by fold or some folds at a time.
template <class T>
class FoldFits {
 public:
  FoldFits(const CrossValidation& cv, const Prior& prior, const CriterionSettings& settings, LinearParts<T>& linear,
           Space space, const WarmStart& before, WarmStart& after, Criterion& out, const Execution& execution);

  /// Some folds in lockstep, on all rows. In the space of weights one only.
  void stacked(Index first_fold, Index count);

  /// One fold on the rows it is trained on.
  void shuffled(Index fold);

  /// One fold on all rows, by Cholesky factors.
  void exact(Index fold);

  /// Where predictors of held-out rows are written to; null for nowhere.
  void write_predictors(Matrix<double>* predictors) { predictors_ = predictors; }

  /// Memory of the vectors of one fold.
  double bytes() const;

 private:
  Problem make_problem(const Coupling& coupling, Index copies) const;
  MinimizeSettings minimize_settings(const Problem& problem, double tolerance) const;
  Report report(FoldOutcome& outcome, const Execution& execution) const;
  std::vector<Operator<T>*> whole_operators();
  FoldRows<T> operators_of(Index fold);
  Matrix<double> product(const Problem& problem, const std::vector<Operator<T>*>& operators, const Matrix<double>& S,
                         FoldOutcome& outcome);

  template <class AnySpace>
  void fit(AnySpace& space, const Problem& problem, const Buffer<double>& before, FoldOutcome& outcome,
           const Execution& execution) const;
  template <class AnySpace>
  void solve(AnySpace& space, const Problem& problem, const Buffer<double>& before, FoldOutcome& outcome,
             const Execution& execution) const;

  /// Both, on all rows.
  template <class AnySpace>
  void fit_and_solve(AnySpace& space, Problem& problem, Index fold, const Buffer<double>& fit_before,
                     Buffer<double> adjoint_before, FoldOutcome& outcome, const Execution& execution) const;

  /// Predictors of rows that a fold holds out, among others.
  void write(Index fold, const Matrix<double>& u) const;

  /// Adds a fold to the criterion, all but its gradient.
  void merge(const FoldOutcome& outcome);

  const CrossValidation& cv_;
  const Prior& prior_;
  const CriterionSettings& settings_;
  LinearParts<T>& linear_;
  Space space_;
  StateTape fits_, adjoints_;
  Criterion& out_;
  Execution execution_;
  Index rows_, classes_;
  Matrix<double>* predictors_ = nullptr;
};

}  // namespace taxolearn
