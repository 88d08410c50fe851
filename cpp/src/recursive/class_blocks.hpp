// Classes in blocks of a few lanes, and what the solvers keep of them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "taxolearn/recursive/problem.hpp"
#include "taxolearn/recursive/settings.hpp"

namespace taxolearn {

/// A node above some lanes of a block: lanes begin .. end, since leaves below a node are consecutive.
struct Ancestor {
  Index node = 0;
  Index begin = 0;
  Index end = 0;
};

/// Consecutive classes that are worked on side by side.
struct ClassBlock {
  Index first = 0;
  Index count = 0;
  std::vector<Ancestor> ancestors;  ///< inner nodes above any of its classes, the root first
};

/// The problem as the solvers see it: checked, with everything that does not change from one visit to the next.
class ClassBlocks {
 public:
  explicit ClassBlocks(const RecursiveProblem& problem);

  const RecursiveProblem& problem() const { return problem_; }
  const std::vector<ClassBlock>& blocks() const { return blocks_; }
  Index rows() const { return input_rows(problem_.X); }
  Index features() const { return input_features(problem_.X); }
  Index inner() const { return problem_.taxonomy == nullptr ? 0 : problem_.taxonomy->inner(); }
  Index nodes() const { return inner() + problem_.classes; }
  double variance(Index node) const { return variances_[static_cast<std::size_t>(node)]; }
  double leaf_variance(Index c) const { return variance(inner() + c); }

  /// The lanes of a block. Covariances count the variance of inner node n `copies[n]` times; null: not at all.
  LaneProblem lanes(const ClassBlock& block, const std::vector<int>* copies,
                    std::vector<std::uint32_t>& positives) const;

  /// Dual variables of another fit, at most what the costs allow. Throws InvalidArgument unless they suit the problem.
  std::vector<SparseColumn> feasible(const std::vector<SparseColumn>& duals) const;

 private:
  RecursiveProblem problem_;
  std::vector<ClassBlock> blocks_;
  std::vector<double> variances_, costs_, squared_norms_;
  std::vector<std::int64_t> class_offsets_;  // rows by class
  std::vector<std::int32_t> class_rows_;
};

/// duals (n x width) = the columns of a block.
template <class T>
void spread(const ClassBlock& block, const std::vector<SparseColumn>& columns, Index width, Buffer<T>& duals);

/// The nonzero elements of lane l.
template <class T>
SparseColumn collect(const Buffer<T>& matrix, Index width, Index lane);

/// W[:, begin .. end] += factor * column.
template <class T>
void add_to_lanes(const SparseColumn& column, double factor, Index begin, Index end, Index width, T* W);

/// to += column.
void add(const SparseColumn& column, SparseColumn& to);

SparseColumn scaled(SparseColumn column, double factor);

double squared_norm(const SparseColumn& column);

}  // namespace taxolearn
