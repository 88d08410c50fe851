// Fits and systems of some folds: what an evaluation consists of.
#pragma once

#include "taxolearn/klr/space.hpp"
#include "taxolearn/select/criterion.hpp"

namespace taxolearn {

/// Hands out the points of the last inner state one after the other, and takes down the new ones.
class StateTape {
 public:
  StateTape(const Buffer<float>& before, Buffer<float>& after) : before_(before), after_(after) {}

  /// Where the next point, of this size, starts; empty where nothing is known.
  Buffer<double> next(Index size) const {
    const auto from = static_cast<Index>(after_.size());
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

/// One evaluation with products in precision T, fold by fold or group by group.
template <class T>
class FoldFits {
 public:
  FoldFits(const CrossValidation& cv, const Candidate& candidate, const CriterionSettings& settings,
           KernelMatrices* kernels, LinearParts<T>& linear, State state, const InnerState& before, InnerState& after,
           Criterion& out, const Execution& execution);

  /// Some folds side by side, on all rows.
  void stacked(Index first_fold, Index copies);

  /// One fold on the rows it is trained on.
  void shuffled(Index fold);

  /// One fold on all rows, by Cholesky factors.
  void exact(Index fold);

  /// Memory of `copies` folds side by side.
  double stacked_bytes(Index copies) const;

 private:
  Problem make_problem(const Coupling& coupling, Index copies) const;
  int history(const Problem& problem) const { return choose_history(problem, state_); }
  MinimizeSettings minimize_settings(const Problem& problem, double tolerance) const;
  Report report();
  void note(const MinimizeResult& outcome, double& gap);

  std::vector<Operator<T>*> whole_operators();
  std::vector<Operator<T>*> part_operators(Index fold, const std::vector<Index>& rows);
  Matrix<double> product(const Problem& problem, const Matrix<double>& S);

  template <class Space>
  void fit(Space& space, const Problem& problem);
  template <class Space>
  void solve(Space& space, const Problem& problem, const Matrix<double>* known);
  template <class Space>
  void fit_and_solve(Space& space, Problem& problem, const Likelihood& trained, const Likelihood& held_out);

  const CrossValidation& cv_;
  const Candidate& candidate_;
  const CriterionSettings& settings_;
  KernelMatrices* kernels_;
  LinearParts<T>& linear_;
  State state_;
  StateTape fits_, adjoints_;
  Criterion& out_;
  Execution execution_;
  Index rows_, classes_;
  Buffer<double> fit_, adjoint_;  ///< the last points
};

}  // namespace taxolearn
