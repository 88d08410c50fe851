#include "taxolearn/operators/incomplete_cholesky.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/base/product.hpp"
#include "taxolearn/base/triangular.hpp"
#include "taxolearn/base/vector.hpp"

namespace taxolearn {
namespace {

constexpr Index rows_per_block = 512;
constexpr Index columns_per_block = 64;
constexpr Index first_capacity = 504;  // columns; no power of two, which would bring rows to the same cache sets

// Pivoting. More candidates come closer to the greedy choice; their small factorization then costs more.
constexpr Index candidates_per_pivot = 8;
constexpr double accepted_share = 0.5;  // of the largest residual outside the candidates

// Exact kernels never make a residual negative. What falls below zero by a tenth of a pivot is noise as large as the
// pivot: the end of what can be factorized or, at a pivot of more than this share of the diagonal, no kernel at all.
constexpr double noise_share = 0.1;
constexpr double indefinite_share = 1e-3;

std::size_t position(Index i) { return static_cast<std::size_t>(i); }

/// The state of a factorization between passes.
class IncompleteCholesky {
 public:
  IncompleteCholesky(const Kernel& kernel, const InputRows& rows, Index max_rank, double tolerance, Index pass,
                     const Execution& execution)
      : kernel_(kernel), rows_(rows), n_(rows.count()), pass_(pass), execution_(execution) {
    factor_.max_rank = max_rank;
    factor_.tolerance = tolerance;
    factor_.residual.resize(position(n_));
    kernel.diag(rows, factor_.residual.data());
    for (Index i = 0; i < n_; ++i) {
      const double value = factor_.residual[position(i)];
      require(std::isfinite(value) && value >= 0.0, "kernel of row ", rows.source(i), " with itself is ", value,
              ", expected a finite number >= 0; check the inputs and the kernel's parameters");
      largest_ = std::max(largest_, value);
    }
    factor_.trace = missing_ = std::accumulate(factor_.residual.begin(), factor_.residual.end(), 0.0);
    rounding_ = std::numeric_limits<double>::epsilon() * static_cast<double>(std::max<Index>(n_, 256)) * largest_;
    order_.assign(position(n_), -1);
    taken_.resize(position(n_));
  }

  LowRankFactor run() {
    const Index limit = std::min(factor_.max_rank, n_);
    while (rank() < limit && missing_ > factor_.tolerance * factor_.trace && add_pivots(limit - rank())) {
    }
    resize(rank());
    return std::move(factor_);
  }

 private:
  Index rank() const { return factor_.rank(); }
  Index capacity() const { return factor_.L.cols(); }

  /// One pass; false if there is nothing left to factorize.
  bool add_pivots(Index most) {
    choose_candidates();
    if (residual(candidates_.front()) <= rounding_) return false;
    choose_pivots(std::min(pass_, most));
    compute_columns();
    const bool sound = judge_columns();
    accept_columns();
    return sound;
  }

  double residual(Index i) const { return factor_.residual[position(i)]; }

  /// The rows of the largest residuals, best first, and the largest residual of all others.
  void choose_candidates() {
    const Index count = std::min(pass_ == 1 ? 1 : candidates_per_pivot * pass_, n_);
    const auto better = [this](Index a, Index b) {
      return residual(a) != residual(b) ? residual(a) > residual(b) : a < b;
    };
    candidates_.resize(position(n_));
    std::iota(candidates_.begin(), candidates_.end(), Index(0));
    others_ = 0.0;
    if (count < n_) {
      std::nth_element(candidates_.begin(), candidates_.begin() + count, candidates_.end(), better);
      others_ = residual(candidates_[position(count)]);
    }
    candidates_.resize(position(count));
    std::sort(candidates_.begin(), candidates_.end(), better);
  }

  /// Greedy factorization of what is left of the matrix among the candidates.
  void choose_pivots(Index most) {
    const Index count = static_cast<Index>(candidates_.size());
    const Index k = rank();
    Matrix<double> known(count, k);
    for (Index a = 0; a < count; ++a) std::copy_n(factor_.L.row(candidate(a)), k, known.row(a));
    Matrix<double> left(count, count);
    const InputRows inputs = pick_rows(rows_, candidates_);
    const auto entries = kernel_.double_entries(inputs, inputs, execution_);
    const Blocks blocks(count, columns_per_block);
    parallel_for(blocks.number(), execution_, [&](Index b) {
      const DenseView<double> part(left.row(blocks.first(b)), blocks.length(b), count);
      entries->block(blocks.first(b), 0, part);
      add_product(Product::ABt, row_block(known.view(), blocks.first(b), part.rows), known.view(), part, -1.0);
    });

    std::vector<double> remaining(position(count));
    for (Index a = 0; a < count; ++a) remaining[position(a)] = residual(candidate(a));
    Matrix<double> columns(most, count);  // transposed
    std::vector<Index> chosen;
    while (static_cast<Index>(chosen.size()) < most) {
      Index best = 0;
      for (Index a = 1; a < count; ++a) {
        const double here = remaining[position(a)];
        const double largest = remaining[position(best)];
        if (here > largest || (here == largest && candidate(a) < candidate(best))) best = a;
      }
      const double pivot = remaining[position(best)];
      if (!(pivot > rounding_) || (!chosen.empty() && pivot < accepted_share * others_)) break;
      const Index j = static_cast<Index>(chosen.size());
      double* const column = columns.row(j);
      std::copy_n(left.row(best), count, column);
      for (Index i = 0; i < j; ++i) axpy_block(-columns.row(i)[best], columns.row(i), column, count);
      for (Index a = 0; a < count; ++a) column[a] /= std::sqrt(pivot);
      column[best] = std::sqrt(pivot);
      for (const Index earlier : chosen) column[earlier] = 0.0;
      for (Index a = 0; a < count; ++a) remaining[position(a)] -= column[a] * column[a];
      chosen.push_back(best);
      for (const Index a : chosen) remaining[position(a)] = 0.0;
    }

    const Index added = static_cast<Index>(chosen.size());
    pivots_.clear();
    pivot_rows_ = Matrix<double>(added, k);
    triangle_ = Matrix<double>(added, added);
    for (Index j = 0; j < added; ++j) {
      const Index a = chosen[position(j)];
      pivots_.push_back(candidate(a));
      order_[position(candidate(a))] = k + j;
      std::copy_n(known.row(a), k, pivot_rows_.row(j));
      for (Index i = 0; i < added; ++i) triangle_.row(j)[i] = columns.row(i)[a];
    }
  }

  Index candidate(Index a) const { return candidates_[position(a)]; }

  /// L[:, k : k + b] = (M[:, P] - L[:, : k] L[P, : k]^T) L_PP^-T for the b new pivots P.
  void compute_columns() {
    const Index k = rank();
    const Index added = static_cast<Index>(pivots_.size());
    if (k + added > capacity()) {
      resize(std::min({std::max({2 * capacity(), k + added, first_capacity}), factor_.max_rank, n_}));
    }
    const InputRows inputs = pick_rows(rows_, pivots_);
    const auto entries = kernel_.double_entries(rows_, inputs, execution_);
    const DenseView<double> L = factor_.L.view();
    const Blocks blocks(n_, rows_per_block);
    parallel_for(blocks.number(), execution_, [&](Index b) {
      const Index first = blocks.first(b);
      const Index count = blocks.length(b);
      const DenseView<double> columns = block(L, first, count, k, added);
      entries->block(first, 0, columns);
      add_product(Product::ABt, block(L, first, count, 0, k), pivot_rows_.view(), columns, -1.0);
      solve_lower_transposed_right(triangle_.view(), columns);
      for (Index i = 0; i < count; ++i) {
        const Index order = order_[position(first + i)];
        if (order >= k) std::copy_n(triangle_.row(order - k), added, columns.row(i));
        if (order >= 0 && order < k) std::fill_n(columns.row(i), added, 0.0);
        taken_[position(first + i)] = dot_block(columns.row(i), columns.row(i), added);
      }
    });
  }

  /// Keeps as many of the new columns as the tolerance wants and the noise in the matrix allows; false if noise ends
  /// the factorization.
  bool judge_columns() {
    const Blocks blocks(n_, rows_per_block);
    const Outcome outcome = parallel_sum<Outcome>(blocks, execution_, [&](Index first, Index count) {
      Outcome part;
      for (Index i = first; i < first + count; ++i) {
        const double left = residual(i) - taken_[position(i)];
        part.sum += std::max(left, 0.0);
        part.sound = part.sound && left >= -4.0 * rounding_;
      }
      return part;
    });
    if (outcome.sound && outcome.sum > factor_.tolerance * factor_.trace) return true;  // residuals only fall

    const Index k = rank();
    const Index added = static_cast<Index>(pivots_.size());
    Matrix<double> sums(blocks.number(), added);
    Matrix<Index> worst(blocks.number(), added);  // a row whose residual the column makes negative, plus one
    parallel_for(blocks.number(), execution_, [&](Index b) {
      for (Index i = blocks.first(b); i < blocks.first(b) + blocks.length(b); ++i) {
        double left = residual(i);
        for (Index j = 0; j < added; ++j) {
          const double value = factor_.L.row(i)[k + j];
          left -= value * value;
          if (!(left >= -4.0 * rounding_ - noise_share * pivot(j))) worst.row(b)[j] = i + 1;
          sums.row(b)[j] += std::max(left, 0.0);
        }
      }
    });
    for (Index j = 0; j < added; ++j) {
      double sum = 0.0;
      for (Index b = 0; b < blocks.number(); ++b) {
        sum += sums.row(b)[j];
        const Index row = worst.row(b)[j] - 1;
        if (row < 0) continue;
        require(pivot(j) <= indefinite_share * largest_, "kernel is not positive semidefinite or not finite: rows ",
                rows_.source(pivots_[position(j)]), " and ", rows_.source(row),
                " have a larger kernel value than their diagonal entries allow; check the inputs or the precomputed "
                "matrix");
        keep(j);
        return false;
      }
      if (sum <= factor_.tolerance * factor_.trace) {
        keep(j + 1);
        return true;
      }
    }
    return true;
  }

  struct Outcome {
    double sum = 0.0;
    bool sound = true;

    void operator+=(const Outcome& other) {
      sum += other.sum;
      sound = sound && other.sound;
    }
  };

  double pivot(Index j) const { return triangle_.row(j)[j] * triangle_.row(j)[j]; }

  /// Drops all new columns but the first ones.
  void keep(Index count) {
    for (std::size_t j = position(count); j < pivots_.size(); ++j) order_[position(pivots_[j])] = -1;
    pivots_.resize(position(count));
    for (Index i = 0; i < n_; ++i) {
      const double* columns = factor_.L.row(i) + rank();
      taken_[position(i)] = dot_block(columns, columns, count);
    }
  }

  void accept_columns() {
    const Blocks blocks(n_, rows_per_block);
    missing_ = parallel_sum<double>(blocks, execution_, [&](Index first, Index count) {
      double sum = 0.0;
      for (Index i = first; i < first + count; ++i) {
        double& left = factor_.residual[position(i)];
        left = order_[position(i)] >= 0 ? 0.0 : std::max(left - taken_[position(i)], 0.0);
        sum += left;
      }
      return sum;
    });
    factor_.pivots.insert(factor_.pivots.end(), pivots_.begin(), pivots_.end());
  }

  /// Makes L as many columns wide.
  void resize(Index columns) {
    if (columns == capacity() && factor_.L.rows() == n_) return;
    Matrix<double> wider(n_, columns);
    const Index kept = std::min(rank(), columns);
    const Blocks blocks(n_, rows_per_block);
    parallel_for(blocks.number(), execution_, [&](Index b) {
      copy(block(factor_.L.view(), blocks.first(b), blocks.length(b), 0, kept),
           block(wider.view(), blocks.first(b), blocks.length(b), 0, kept));
    });
    factor_.L = std::move(wider);
  }

  const Kernel& kernel_;
  const InputRows& rows_;
  const Index n_;
  const Index pass_;
  const Execution& execution_;

  LowRankFactor factor_;      // its L is as wide as the columns there is room for
  double largest_ = 0.0;      // of the diagonal
  double rounding_ = 0.0;     // residuals that mean nothing
  double missing_ = 0.0;      // sum of the residuals
  std::vector<Index> order_;  // of each row among the pivots; -1 for other rows

  // Of one pass
  std::vector<Index> candidates_;
  double others_ = 0.0;        // largest residual outside the candidates
  std::vector<Index> pivots_;  // new ones
  Matrix<double> pivot_rows_;  // L[P, : k]
  Matrix<double> triangle_;    // L_PP
  std::vector<double> taken_;  // by the new columns from the residuals
};

}  // namespace

double LowRankFactor::missing() const {
  return trace > 0.0 ? std::accumulate(residual.begin(), residual.end(), 0.0) / trace : 0.0;
}

LowRankFactor incomplete_cholesky(const Kernel& kernel, const InputRows& rows, Index max_rank, double tolerance,
                                  const Execution& execution, Index pass) {
  require(max_rank >= 1, "max_rank is ", max_rank, ", expected at least 1");
  require(tolerance >= 0.0 && tolerance < 1.0, "tolerance is ", tolerance, ", expected a number in [0, 1)");
  require(pass >= 1, "pass is ", pass, ", expected at least 1");
  return IncompleteCholesky(kernel, rows, max_rank, tolerance, pass, execution).run();
}

InputRows pick_rows(const InputRows& rows, const std::vector<Index>& positions) {
  InputRows picked{rows.X, {}};
  picked.selected.reserve(positions.size());
  for (const Index i : positions) picked.selected.push_back(rows.source(i));
  return picked;
}

}  // namespace taxolearn
