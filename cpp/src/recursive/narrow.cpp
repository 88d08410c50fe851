// Coordinate ascent of the whole dual, row after row, of problems with few classes: see joint.cpp.
//
// Scores, dual variables and steps of a row are as wide as there are classes, and W is stored per class: a row's product
// gives the scores at once. A dual variable that moves changes the scores of its row by |x_i|^2 times its row of G, which
// is a handful of instructions; so the row's own problem of all classes is worked on before W is touched once.
#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "class_weights.hpp"
#include "part_sums.hpp"
#include "sweep.hpp"

namespace taxolearn {
namespace {

constexpr Index most_classes = 256;
constexpr Index small = Index(1) << 24;  // numbers, or so many for every entry of X, that may be stored
constexpr Index per_entry = 8;
constexpr int most_rounds = 4;        // over the classes of a row
constexpr double rounds_until = 0.3;  // of the first largest violation
constexpr Index least_passes = 10;    // over active rows between passes over all
constexpr Index most_passes = 1000;   // the same, of a problem with few rows, which are all active
constexpr Index visits_between = 10000;
constexpr double idle_share = 1.0;  // of the mean gap of a row: it is left out until the next pass over all
constexpr double enough = 0.3;      // of the gap of the first of these passes

/// What a pass finds.
struct PassResult {
  double gap = 0.0;
  double objective = 0.0;
};

template <class T>
class NarrowPasses {
 public:
  NarrowPasses(const ClassBlocks& blocks, const std::vector<SparseColumn>& duals)
      : blocks_(blocks),
        weights_(blocks.problem().X, blocks.problem().bias, blocks.classes()),
        width_(weights_.width()),
        covariance_(zeros(width_ * width_)),
        alpha_(zeros(width_ * blocks.rows())),
        sign_(static_cast<std::size_t>(width_), T(-1)),
        weight_(zeros(width_)),
        u_(zeros(width_)),
        violated_(zeros(width_)),
        change_(zeros(width_)),
        movers_(static_cast<std::size_t>(width_)) {
    PartSums sums(blocks.factor());
    for (Index c = 0; c < blocks.classes(); ++c) {
      sums.add(c, 1.0);
      for (Index m = 0; m < blocks.classes(); ++m) {
        covariance_[at(c * width_ + m)] = static_cast<T>(sums.at_class(m));
      }
      sums.clear();
      weight_[at(c)] = static_cast<T>(blocks.problem().negative_weights[at(c)]);
    }
    for (Index i = 0; i < blocks.rows(); ++i) add_row(i, duals[at(i)]);
  }

  std::vector<SparseColumn> duals() const {
    std::vector<SparseColumn> out(at(blocks_.rows()));
    for (Index i = 0; i < blocks_.rows(); ++i) {
      for (Index c = 0; c < blocks_.classes(); ++c) {
        const T value = alpha_[at(i * width_ + c)];
        if (value == T(0)) continue;
        out[at(i)].indices.push_back(static_cast<std::int32_t>(c));
        out[at(i)].values.push_back(static_cast<double>(value));
      }
    }
    return out;
  }

  /// Visits these rows in their order; gaps[i] is that of row i when it was visited.
  PassResult pass(const std::vector<std::int32_t>& order, std::vector<double>& gaps, const Execution& execution) {
    PassResult out;
    for (std::size_t k = 0; k < order.size(); ++k) {
      const PassResult own = visit(order[k]);
      gaps[at(order[k])] = own.gap;
      out.gap += own.gap;
      out.objective += own.objective;
      if (k % 1024 == 0 && interrupted(execution)) break;
    }
    return out;
  }

 private:
  static constexpr T infinity = std::numeric_limits<T>::infinity();

  static std::size_t at(Index k) { return static_cast<std::size_t>(k); }
  static Buffer<T> zeros(Index size) { return Buffer<T>(at(size), T(0)); }

  void add_row(Index i, const SparseColumn& duals) {
    if (duals.indices.empty()) return;
    set_labels(i);
    for (std::size_t e = 0; e < duals.indices.size(); ++e) {
      const Index c = duals.indices[e];
      const T own = std::min(static_cast<T>(duals.values[e]), upper_bound(i, c));
      alpha_[at(i * width_ + c)] = own;
      add_change(c, own);
    }
    take_change(i);
    forget_labels(i);
  }

  /// Signs and weights of the classes, as this row has them.
  void set_labels(Index i) {
    for (const std::int32_t c : blocks_.labels(i)) {
      sign_[at(c)] = T(1);
      weight_[at(c)] = static_cast<T>(blocks_.problem().positive_weights[at(c)]);
    }
  }
  void forget_labels(Index i) {
    for (const std::int32_t c : blocks_.labels(i)) {
      sign_[at(c)] = T(-1);
      weight_[at(c)] = static_cast<T>(blocks_.problem().negative_weights[at(c)]);
    }
  }

  bool is_squared() const { return blocks_.problem().loss == Hinge::squared; }

  // Rounded down, so that no dual variable exceeds what it may be in exact arithmetic.
  static T bound(bool squared, T C) {
    return squared && C > T(0) ? infinity : C * (T(1) - T(2) * std::numeric_limits<T>::epsilon());
  }
  T upper_bound(Index i, Index c) const {
    return bound(is_squared(), static_cast<T>(blocks_.row_cost(i)) * weight_[at(c)]);
  }

  /// What the scores per squared norm change by, if the dual variable of class c grows by this.
  void add_change(Index c, T step) {
    const T factor = sign_[at(c)] * step;
    const T* const row = covariance_.data() + c * width_;
    T* const change = change_.data();
#pragma omp simd
    for (Index m = 0; m < width_; ++m) change[m] += factor * row[m];
  }
  void take_change(Index i) {
    weights_.add(i, change_.data());
    std::fill(change_.begin(), change_.end(), T(0));
  }

  PassResult visit(Index i) {
    weights_.scores(i, u_.data());
    set_labels(i);
    const T cost = static_cast<T>(blocks_.row_cost(i)), norm = static_cast<T>(blocks_.squared_norm(i));
    const PassResult found = terms(i, cost);
    const T largest = violations(i, cost, norm);
    if (largest > T(0)) {
      move(i, cost, norm, largest);
      take_change(i);
    }
    forget_labels(i);
    return found;
  }

  /// Gap and objective at the scores as they are.
  PassResult terms(Index i, T cost) const {
    const bool squared = is_squared();
    const T* const alpha = alpha_.data() + i * width_;
    const T *const sign = sign_.data(), *const weight = weight_.data(), *const u = u_.data();
    T gap = T(0), objective = T(0);
#pragma omp simd reduction(+ : gap, objective)
    for (Index c = 0; c < width_; ++c) {
      const T C = cost * weight[c], r = squared && C > T(0) ? T(0.5) / C : T(0);
      const T a = alpha[c], slack = T(1) - sign[c] * u[c];
      const T above = std::max(slack, T(0)), loss = C * above * (squared ? above : T(1));
      gap += loss - a * slack + T(0.5) * r * a * a;
      objective += loss + T(0.5) * a * (T(1) - slack);
    }
    return {static_cast<double>(gap), static_cast<double>(objective)};
  }

  /// Violations once the scores have changed; the largest.
  T violations(Index i, T cost, T norm) {
    const bool squared = is_squared();
    const T* const alpha = alpha_.data() + i * width_;
    const T *const sign = sign_.data(), *const weight = weight_.data(), *const u = u_.data();
    const T* const change = change_.data();
    T* const violated = violated_.data();
    T largest = T(0);
#pragma omp simd reduction(max : largest)
    for (Index c = 0; c < width_; ++c) {
      const T C = cost * weight[c], U = bound(squared, C), r = squared && C > T(0) ? T(0.5) / C : T(0);
      const T a = alpha[c], G = r * a - T(1) + sign[c] * (u[c] + norm * change[c]);
      const T projected = a <= T(0) ? std::min(G, T(0)) : a >= U ? std::max(G, T(0)) : G;
      violated[c] = C > T(0) ? std::abs(projected) : T(0);
      largest = std::max(largest, violated[c]);
    }
    return largest;
  }

  /// Moves the classes that want to, one after the other, until little is left of the largest violation.
  void move(Index i, T cost, T norm, T largest) {
    const bool squared = is_squared();
    T* const alpha = alpha_.data() + i * width_;
    const T until = static_cast<T>(rounds_until) * largest;
    for (int round = 0;;) {
      std::size_t count = 0;
      for (Index c = 0; c < width_; ++c) {
        movers_[count] = static_cast<std::int32_t>(c);
        count += violated_[at(c)] > T(0) ? 1 : 0;
      }
      for (std::size_t k = 0; k < count; ++k) {
        const Index c = movers_[k];
        const T C = cost * weight_[at(c)], r = squared ? T(0.5) / C : T(0);
        const T slack = T(1) - sign_[at(c)] * (u_[at(c)] + norm * change_[at(c)]);
        const T curvature = std::max(norm * covariance_[at(c * width_ + c)] + r, std::numeric_limits<T>::min());
        const T next = std::min(std::max(alpha[c] + (slack - r * alpha[c]) / curvature, T(0)), bound(squared, C));
        const T step = next - alpha[c];
        if (step == T(0)) continue;
        alpha[c] = next;
        add_change(c, step);
      }
      if (++round == most_rounds) return;
      if (violations(i, cost, norm) <= until) return;
    }
  }

  const ClassBlocks& blocks_;
  ClassWeights<T> weights_;
  Index width_;
  Buffer<T> covariance_;                             // G
  Buffer<T> alpha_;                                  // rows x width
  Buffer<T> sign_, weight_, u_, violated_, change_;  // of the row at work
  std::vector<std::int32_t> movers_;
};

class NarrowSweeps final : public Sweeps {
 public:
  NarrowSweeps(const ClassBlocks& blocks, std::vector<SparseColumn> duals)
      : blocks_(blocks),
        duals_(std::move(duals)),
        order_(static_cast<std::size_t>(blocks.rows())),
        gaps_(order_.size(), std::numeric_limits<double>::infinity()) {
    std::iota(order_.begin(), order_.end(), 0);
  }

  SweepResult sweep(const SweepSettings& settings, const Execution& execution) override {
    return settings.single ? sweep_in(single_, settings, execution) : sweep_in(double_, settings, execution);
  }

  std::vector<SparseColumn> duals() const override {
    return single_ != nullptr ? single_->duals() : double_ != nullptr ? double_->duals() : duals_;
  }

 private:
  template <class T>
  SweepResult sweep_in(std::unique_ptr<NarrowPasses<T>>& passes, const SweepSettings& settings,
                       const Execution& execution) {
    if (passes == nullptr) {
      duals_ = duals();
      single_.reset();
      passes = std::make_unique<NarrowPasses<T>>(blocks_, duals_);
    }
    std::mt19937_64 random(settings.seed);
    SweepResult out;
    const auto shuffle = [&](std::vector<std::int32_t>& order) {
      for (std::size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[random() % k]);
    };
    const auto pass = [&](const std::vector<std::int32_t>& order) {
      out.visits += static_cast<double>(order.size()) * static_cast<double>(blocks_.classes());
      return passes->pass(order, gaps_, execution);
    };
    const Index number = std::clamp(visits_between / blocks_.rows(), least_passes, most_passes);
    const double idle = number > least_passes ? -1.0 : idle_share * last_gap_ / static_cast<double>(blocks_.rows());
    double first = 0.0;
    for (Index k = 0; k < number && sweeps_ > 0; ++k) {
      std::vector<std::int32_t> active;
      for (std::size_t i = 0; i < gaps_.size(); ++i) {
        if (gaps_[i] > idle) active.push_back(static_cast<std::int32_t>(i));
      }
      if (active.empty()) break;
      shuffle(active);
      const PassResult found = pass(active);
      if (k == 0) first = found.gap;
      if (found.gap <= enough * first) break;
    }
    ++sweeps_;
    shuffle(order_);
    const PassResult found = pass(order_);
    last_gap_ = found.gap;
    out.gap = found.gap;
    out.objective = found.objective;
    return out;
  }

  const ClassBlocks& blocks_;
  std::vector<SparseColumn> duals_;  // by row
  std::vector<std::int32_t> order_;  // of all rows
  std::vector<double> gaps_;         // of rows, when they were visited last
  double last_gap_ = 0.0;
  int sweeps_ = 0;
  std::unique_ptr<NarrowPasses<float>> single_;
  std::unique_ptr<NarrowPasses<double>> double_;
};

}  // namespace

bool is_narrow(const ClassBlocks& blocks) {
  const Index numbers = (blocks.rows() + blocks.features() + 1) * ClassWeights<float>::width_for(blocks.classes());
  return blocks.classes() <= most_classes && numbers <= std::max(small, per_entry * input_entries(blocks.problem().X));
}

std::unique_ptr<Sweeps> narrow_sweeps(const ClassBlocks& blocks, std::vector<SparseColumn> duals) {
  return std::make_unique<NarrowSweeps>(blocks, std::move(duals));
}

}  // namespace taxolearn
