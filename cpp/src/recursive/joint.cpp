// Coordinate ascent of the whole dual, row after row.
//
// Inner nodes are eliminated: w = G a, where G is the prior covariance of the classes. A visit of row i moves its dual
// variables of all classes, with their exact effect on each other: |x_i|^2 G is their Hessian, and no product with X is
// needed to follow it. So the coupling of the classes costs no more visits of rows than classes apart need; blocks of
// classes instead would take turns at explaining by themselves what they share.
//
// Scores of a few rows are found at a time, on all threads, and corrected by what the rows before them in their batch
// change, which takes inner products of rows. So each row is visited as if it was alone, whatever the number of threads.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "certificate.hpp"
#include "part_sums.hpp"
#include "sweep.hpp"

namespace taxolearn {
namespace {

constexpr Index wide = 512;           // parts from which on threads share a batch of rows
constexpr Index rows_of_wide = 32;    // in a batch
constexpr int most_rounds = 4;        // over the classes of a row
constexpr double rounds_until = 0.1;  // of the first largest violation
constexpr double negligible = 0.02;   // of the largest violation of a row: dual variables stay zero
constexpr Index least_passes = 10;    // over active rows between passes over all
constexpr Index most_passes = 1000;   // the same, of a problem with few rows, which are all active
constexpr Index visits_between = 10000;
constexpr double idle_share = 1.0;  // of the mean gap of a row: it is left out until the next pass over all
constexpr double enough = 0.3;      // of the gap of the first of these passes

/// A dual variable that may move.
struct Candidate {
  std::int32_t c = 0;
  bool is_positive = false;
  double cost = 0.0;
  double alpha = 0.0;
  double score = 0.0;
  double diagonal = 0.0;
};

/// Which classes of a row a pass looks at.
enum class Pairs {
  all,
  active,  ///< labels, and those with dual variables above zero
};

/// A row of a batch.
struct Visit {
  std::vector<Candidate> candidates;
  std::vector<double> products;  ///< with the rows before it in the batch
};

template <class T>
class RowPasses {
 public:
  RowPasses(const ClassBlocks& blocks, std::vector<SparseColumn>& duals)
      : blocks_(blocks),
        factor_(blocks.factor()),
        duals_(duals),
        parts_(blocks.problem().X, blocks.problem().bias, factor_.parts()),
        own_(factor_),
        all_(factor_),
        batch_rows_(factor_.parts() < wide ? 1 : rows_of_wide),
        visits_(static_cast<std::size_t>(batch_rows_)) {
    for (Index c = 0; c < blocks.classes(); ++c) diagonals_.push_back(factor_.diagonal(c));
  }

  /// Sums of the dual variables afresh: without what was rounded, and without elements that have become zero.
  void rebuild(const Execution& execution) {
    parts_.clear();
    add_duals(blocks_, duals_, parts_, execution);
  }

  /// Visits the rows in this order; gaps[i] is that of row i when it was visited.
  PairTerms pass(const std::vector<std::int32_t>& order, Pairs pairs, std::vector<double>& gaps, double& penalty,
                 const Execution& execution) {
    PairTerms out;
    penalty = 0.0;
    std::vector<PartSteps> changes(static_cast<std::size_t>(batch_rows_));
    const Blocks batches(static_cast<Index>(order.size()), batch_rows_);
    const Execution inside{batch_rows_ == 1 ? 1 : execution.threads, nullptr};
    for (Index b = 0; b < batches.number(); ++b) {
      if (b % 64 == 0 && interrupted(execution)) break;
      const std::int32_t* const rows = order.data() + batches.first(b);
      const Index count = batches.length(b);
      parallel_for(count, inside, [&](Index k) { prepare(rows, k, pairs); });
      for (Index k = 0; k < count; ++k) {
        const PairTerms own = move(rows[k], k, changes, penalty);
        gaps[static_cast<std::size_t>(rows[k])] = own.gap;
        out += own;
      }
      for (Index k = count; k < batch_rows_; ++k) changes[static_cast<std::size_t>(k)] = {};
      parts_.add(changes, inside);
    }
    return out;
  }

 private:
  /// Scores of a row by the weights before the batch, and its products with the rows before it.
  void prepare(const std::int32_t* rows, Index k, Pairs pairs) {
    Visit& visit = visits_[static_cast<std::size_t>(k)];
    find_candidates(rows[k], pairs, visit.candidates);
    find_products(rows, k, visit.products);
  }

  void find_candidates(Index i, Pairs pairs, std::vector<Candidate>& out) {
    thread_local Buffer<T> z;
    thread_local std::vector<std::int32_t> violators;
    const Index classes = blocks_.classes();
    std::size_t number = 0;
    if (pairs == Pairs::all) {
      z.resize(static_cast<std::size_t>(parts_.width()));
      parts_.product(i, z.data());
      factor_.to_nodes(z.data());
      violators.resize(static_cast<std::size_t>(classes));
      for (Index c = 0; c < classes; ++c) {
        violators[number] = static_cast<std::int32_t>(c);
        number += z[static_cast<std::size_t>(factor_.place(c))] > T(-1) ? 1 : 0;
      }
    }
    out.clear();
    const std::vector<std::int32_t>& labels = blocks_.labels(i);
    const SparseColumn& duals = duals_[static_cast<std::size_t>(i)];
    std::size_t violator = 0, label = 0, dual = 0;
    const auto none = static_cast<std::int32_t>(classes);
    const auto at = [none](const std::vector<std::int32_t>& list, std::size_t e, std::size_t size) {
      return e < size ? list[e] : none;
    };
    for (;;) {
      Candidate one;
      const std::int32_t own = at(labels, label, labels.size()), active = at(duals.indices, dual, duals.indices.size());
      one.c = std::min({at(violators, violator, number), own, active});
      if (one.c == none) break;
      one.is_positive = own == one.c;
      one.cost = blocks_.cost(i, one.c, one.is_positive);
      one.alpha = active == one.c ? duals.values[dual] : 0.0;
      if (pairs == Pairs::all) one.score = static_cast<double>(z[static_cast<std::size_t>(factor_.place(one.c))]);
      one.diagonal = diagonals_[static_cast<std::size_t>(one.c)];
      violator += violator < number && violators[violator] == one.c ? 1 : 0;
      label += one.is_positive ? 1 : 0;
      dual += active == one.c ? 1 : 0;
      if (one.cost > 0.0) out.push_back(one);
    }
    if (pairs == Pairs::active) score(i, out);
  }

  /// Scores of the candidates alone, by the parts on their paths.
  void score(Index i, std::vector<Candidate>& candidates) const {
    thread_local Buffer<T> z;
    thread_local std::vector<std::int32_t> parts, places;
    places.resize(static_cast<std::size_t>(factor_.parts()), -1);
    parts.clear();
    for (const Candidate& one : candidates) {
      factor_.for_path(one.c, [&](std::int32_t k, double) {
        std::int32_t& place = places[static_cast<std::size_t>(k)];
        if (place < 0) parts.push_back(k);
        place = 0;
      });
    }
    std::sort(parts.begin(), parts.end());
    for (std::size_t e = 0; e < parts.size(); ++e)
      places[static_cast<std::size_t>(parts[e])] = static_cast<std::int32_t>(e);
    z.resize(parts.size());
    parts_.product_at(i, parts, z.data());
    for (Candidate& one : candidates) {
      factor_.for_path(one.c, [&](std::int32_t k, double r) {
        one.score += r * static_cast<double>(z[static_cast<std::size_t>(places[static_cast<std::size_t>(k)])]);
      });
    }
    for (const std::int32_t k : parts) places[static_cast<std::size_t>(k)] = -1;
  }

  /// Inner products of a row with those before it in its batch.
  void find_products(const std::int32_t* rows, Index k, std::vector<double>& products) {
    thread_local Buffer<double> x;
    const InputView& X = blocks_.problem().X;
    const Index i = rows[k];
    const double bias = blocks_.problem().bias;
    products.assign(static_cast<std::size_t>(k), bias * bias);
    if (k == 0) return;
    x.resize(static_cast<std::size_t>(blocks_.features()), 0.0);
    for_entries(X, i, [&](Index feature, double value) { x[static_cast<std::size_t>(feature)] += value; });
    for (Index before = 0; before < k; ++before) {
      double sum = 0.0;
      for_entries(X, rows[before], [&](Index f, double value) { sum += x[static_cast<std::size_t>(f)] * value; });
      products[static_cast<std::size_t>(before)] += sum;
    }
    for_entries(X, i, [&](Index feature, double) { x[static_cast<std::size_t>(feature)] = 0.0; });
  }

  /// Moves the dual variables of a row; what that changes goes to changes[k].
  PairTerms move(Index i, Index k, std::vector<PartSteps>& changes, double& penalty) {
    Visit& visit = visits_[static_cast<std::size_t>(k)];
    for (Index before = 0; before < k; ++before) {
      all_.add(changes[static_cast<std::size_t>(before)], visit.products[static_cast<std::size_t>(before)]);
    }
    const Hinge loss = blocks_.problem().loss;
    const double norm = blocks_.squared_norm(i);
    PairTerms terms;
    double largest = 0.0;
    for (Candidate& one : visit.candidates) {
      const double u = one.score + all_.at_class(one.c), slack = one.is_positive ? 1.0 - u : 1.0 + u;
      terms.add(loss, one.cost, one.alpha, slack);
      penalty += 0.5 * one.alpha * (1.0 - slack);
      largest = std::max(largest, violation(one, slack));
    }
    for (int round = 0; round < most_rounds && largest > 0.0; ++round) {
      double left = 0.0;
      for (Candidate& one : visit.candidates) {
        const double u = one.score + all_.at_class(one.c), slack = one.is_positive ? 1.0 - u : 1.0 + u;
        const double violated = violation(one, slack);
        if (violated == 0.0 || (one.alpha == 0.0 && violated < negligible * largest)) continue;
        left = std::max(left, violated);
        const double ridge = loss == Hinge::squared ? 0.5 / one.cost : 0.0;
        const double curvature = std::max(norm * one.diagonal + ridge, std::numeric_limits<double>::min());
        const double next = std::clamp(one.alpha + (slack - ridge * one.alpha) / curvature, 0.0, upper(one));
        const double step = one.is_positive ? next - one.alpha : one.alpha - next;
        if (step == 0.0) continue;
        one.alpha = next;
        own_.add(one.c, step);
        all_.add(one.c, norm * step);
      }
      if (left <= rounds_until * largest) break;
    }
    SparseColumn& duals = duals_[static_cast<std::size_t>(i)];
    duals.indices.clear();
    duals.values.clear();
    for (const Candidate& one : visit.candidates) {
      if (one.alpha == 0.0) continue;
      duals.indices.push_back(one.c);
      duals.values.push_back(one.alpha);
    }
    all_.clear();
    changes[static_cast<std::size_t>(k)] = own_.take(i);
    return terms;
  }

  double upper(const Candidate& one) const {
    return blocks_.problem().loss == Hinge::squared ? std::numeric_limits<double>::infinity() : one.cost;
  }

  /// The size of the projected gradient.
  double violation(const Candidate& one, double slack) const {
    const double gradient = slack - (blocks_.problem().loss == Hinge::squared ? 0.5 * one.alpha / one.cost : 0.0);
    if (one.alpha <= 0.0) return std::max(gradient, 0.0);
    if (one.alpha >= upper(one)) return std::max(-gradient, 0.0);
    return std::abs(gradient);
  }

  const ClassBlocks& blocks_;
  const ClassFactor& factor_;
  std::vector<SparseColumn>& duals_;  // by row
  FeatureRows<T> parts_;
  PartSums own_, all_;  // of the row at work: what it moved, and what its scores have changed by
  Index batch_rows_ = 1;
  std::vector<Visit> visits_;
  std::vector<double> diagonals_;
};

class JointSweeps final : public Sweeps {
 public:
  JointSweeps(const ClassBlocks& blocks, std::vector<SparseColumn> duals)
      : blocks_(blocks),
        duals_(std::move(duals)),
        gaps_(static_cast<std::size_t>(blocks.rows()), std::numeric_limits<double>::infinity()) {}

  SweepResult sweep(const SweepSettings& settings, const Execution& execution) override {
    return settings.single ? sweep_in(single_, settings, execution) : sweep_in(double_, settings, execution);
  }

  std::vector<SparseColumn> duals() const override { return duals_; }

 private:
  template <class T>
  SweepResult sweep_in(std::unique_ptr<RowPasses<T>>& passes, const SweepSettings& settings,
                       const Execution& execution) {
    if (passes == nullptr) {
      single_.reset();
      passes = std::make_unique<RowPasses<T>>(blocks_, duals_);
      passes->rebuild(execution);
    }
    std::mt19937_64 random(settings.seed);
    SweepResult out;
    const auto pass = [&](std::vector<std::int32_t> order, Pairs pairs) {
      for (std::size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[random() % k]);
      double penalty = 0.0;
      const PairTerms found = passes->pass(order, pairs, gaps_, penalty, execution);
      out.visits += static_cast<double>(order.size()) * static_cast<double>(blocks_.classes());
      out.gap = found.gap;
      out.objective = found.loss + penalty;
    };
    double first = 0.0;
    const Index number = std::clamp(visits_between / blocks_.rows(), least_passes, most_passes);
    const double idle = number > least_passes ? -1.0 : idle_share * gap_ / static_cast<double>(blocks_.rows());
    for (Index k = 0; k < number && sweeps_ > 0; ++k) {
      std::vector<std::int32_t> active;
      for (std::size_t i = 0; i < gaps_.size(); ++i) {
        if (gaps_[i] > idle) active.push_back(static_cast<std::int32_t>(i));
      }
      if (active.empty()) break;
      pass(std::move(active), blocks_.factor().parts() < wide ? Pairs::all : Pairs::active);
      if (k == 0) first = out.gap;
      if (out.gap <= enough * first) break;
    }
    std::vector<std::int32_t> all(gaps_.size());
    std::iota(all.begin(), all.end(), 0);
    pass(std::move(all), Pairs::all);
    gap_ = out.gap;
    ++sweeps_;
    return out;
  }

  const ClassBlocks& blocks_;
  std::vector<SparseColumn> duals_;  // by row
  std::vector<double> gaps_;         // of rows, when they were visited last
  double gap_ = 0.0;
  int sweeps_ = 0;
  std::unique_ptr<RowPasses<float>> single_;
  std::unique_ptr<RowPasses<double>> double_;
};

}  // namespace

std::unique_ptr<Sweeps> joint_sweeps(const ClassBlocks& blocks, std::vector<SparseColumn> duals) {
  return std::make_unique<JointSweeps>(blocks, std::move(duals));
}

}  // namespace taxolearn
