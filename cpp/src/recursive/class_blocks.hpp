// Classes in blocks of a few lanes, and what the solvers keep of them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "class_factor.hpp"
#include "taxolearn/recursive/problem.hpp"
#include "taxolearn/recursive/settings.hpp"

namespace taxolearn {

/// Classes that are worked on side by side, in lanes.
using ClassBlock = std::vector<Index>;

/// These classes in blocks of a few.
std::vector<ClassBlock> in_blocks(const std::vector<Index>& classes);

/// The problem as the solvers see it: checked, with everything that does not change from one visit to the next.
class ClassBlocks {
 public:
  explicit ClassBlocks(const RecursiveProblem& problem);

  const RecursiveProblem& problem() const { return problem_; }
  Index rows() const { return input_rows(problem_.X); }
  Index features() const { return input_features(problem_.X); }
  Index classes() const { return problem_.classes; }
  const ClassFactor& factor() const { return factor_; }
  const std::vector<double>& variances() const { return variances_; }
  double squared_norm(Index i) const { return squared_norms_[static_cast<std::size_t>(i)]; }

  /// C_il, up to the weight of the class.
  double row_cost(Index i) const { return costs_[static_cast<std::size_t>(i)]; }

  /// C_il.
  double cost(Index i, Index c, bool is_positive) const {
    return costs_[static_cast<std::size_t>(i)] *
           (is_positive ? problem_.positive_weights : problem_.negative_weights)[static_cast<std::size_t>(c)];
  }

  /// Of row i, ascending and each once.
  const std::vector<std::int32_t>& labels(Index i) const { return labels_[static_cast<std::size_t>(i)]; }

  /// The lanes of a block, with variances per class.
  LaneProblem lanes(const ClassBlock& block, const std::vector<double>& variances,
                    std::vector<std::uint32_t>& positives) const;

  /// Dual variables of another fit, at most what the costs allow. Throws InvalidArgument unless they suit the problem.
  std::vector<SparseColumn> feasible(const std::vector<SparseColumn>& duals) const;

 private:
  RecursiveProblem problem_;
  ClassFactor factor_;
  std::vector<double> variances_, costs_, squared_norms_;
  std::vector<std::vector<std::int32_t>> labels_;  // by row
  std::vector<std::int64_t> class_offsets_;        // rows by class
  std::vector<std::int32_t> class_rows_;
};

/// Row i of the result has the elements i of all columns.
std::vector<SparseColumn> transposed(const std::vector<SparseColumn>& columns, Index rows);

SparseColumn scaled(SparseColumn column, double factor);

/// to += column.
void add(const SparseColumn& column, SparseColumn& to);

}  // namespace taxolearn
