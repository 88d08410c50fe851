#include "taxolearn/solver/conditional_gradient.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "taxolearn/base/check.hpp"

namespace taxolearn {
namespace {

constexpr Index batch_rows = 64;
constexpr int oracle_calls = 10;       // per visit, at most
constexpr double settled = 0.1;        // share of a row's gap that may stay when the next one is visited
constexpr double working_share = 0.3;  // of the mean gap, that rows of the working set have at least
constexpr int working_passes = 10;     // between passes over all rows, at most
constexpr double safety = 0.9;         // of the tolerance, for what passes meet on their way
constexpr int patience = 20;           // certificates without progress

double dot(const double* g, const std::int8_t* s, Index count) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (Index r = 0; r < count; ++r) sum += g[r] * s[r];
  return sum;
}

/// One row's polytope, while it is worked on.
class RowAscent {
 public:
  RowAscent(const VertexOracle& oracle, Index row, double cost, double curvature, VertexWeights& point)
      : oracle_(oracle),
        row_(row),
        cost_(cost),
        curvature_(cost * curvature),
        count_(static_cast<Index>(oracle.omega().size())),
        point_(point),
        truth_(static_cast<std::size_t>(count_)),
        found_(truth_),
        g_(static_cast<std::size_t>(count_)) {
    oracle.truth(row, truth_.data());
    truth_weight_ = 1.0 - std::accumulate(point.weights.begin(), point.weights.end(), 0.0);
    truth_weight_ = std::max(truth_weight_, 0.0);
  }

  /// Takes steps from the products z, which it moves along, and returns C_i times the row's gap before. Products of the
  /// row with itself change by `curvature` times the change of m.
  double ascend(double* z) {
    set_gradient(z);
    double before = 0.0;
    for (int call = 0; call < oracle_calls; ++call) {
      const double gap = find();
      if (call == 0) before = gap;
      if (!(gap > settled * before) || gap <= least_gap_) break;
      const int steps = 3 + 2 * static_cast<int>(point_.weights.size());
      for (int k = 0; k < steps && step(z, settled * gap); ++k) {
      }
    }
    prune();
    return cost_ * before;
  }

  /// The largest q_iv and the gap max_v q_iv - sum_v a_iv q_iv, without a step.
  double gap_at(const double* z, double* largest) {
    set_gradient(z);
    const double loss = oracle_.best(row_, g_.data(), found_.data());
    *largest = std::max(0.0, loss + dot(g_.data(), found_.data(), count_) - own_);
    return *largest - mean();
  }

  /// m_i.
  void multipliers(double* m) const {
    for (Index r = 0; r < count_; ++r) m[r] = (1.0 - truth_weight_) * truth_[static_cast<std::size_t>(r)];
    for (std::size_t v = 0; v < point_.weights.size(); ++v) {
      const std::int8_t* const s = signs(v);
      for (Index r = 0; r < count_; ++r) m[r] -= point_.weights[v] * s[r];
    }
    for (Index r = 0; r < count_; ++r) m[r] *= cost_;
  }

 private:
  const std::int8_t* signs(std::size_t v) const { return point_.signs.data() + static_cast<Index>(v) * count_; }

  void set_gradient(const double* z) {
    const std::vector<double>& omega = oracle_.omega();
    for (Index r = 0; r < count_; ++r) g_[static_cast<std::size_t>(r)] = omega[static_cast<std::size_t>(r)] * z[r];
    score();
  }

  void score() {
    own_ = dot(g_.data(), truth_.data(), count_);
    q_.resize(point_.weights.size());
    for (std::size_t v = 0; v < q_.size(); ++v) q_[v] = point_.losses[v] + dot(g_.data(), signs(v), count_) - own_;
  }

  double mean() const { return std::inner_product(q_.begin(), q_.end(), point_.weights.begin(), 0.0); }

  /// Adds the best vertex unless it is there, and returns the gap.
  double find() {
    const double loss = oracle_.best(row_, g_.data(), found_.data());
    const double value = loss + dot(g_.data(), found_.data(), count_) - own_;
    const double gap = std::max(value, 0.0) - mean();
    if (!(value > 0.0) || found_ == truth_) return gap;
    for (std::size_t v = 0; v < q_.size(); ++v) {
      if (std::equal(found_.begin(), found_.end(), signs(v))) return gap;
    }
    point_.weights.push_back(0.0);
    point_.losses.push_back(loss);
    point_.signs.insert(point_.signs.end(), found_.begin(), found_.end());
    q_.push_back(value);
    return gap;
  }

  /// Moves weight from the worst vertex that has some to the best one; false if they differ by no more than `least`.
  double step(double* z, double least) {
    constexpr std::ptrdiff_t truth = -1;
    std::ptrdiff_t best = truth, worst = truth;
    double high = 0.0, low = truth_weight_ > 0.0 ? 0.0 : std::numeric_limits<double>::infinity();
    for (std::size_t v = 0; v < q_.size(); ++v) {
      if (q_[v] > high) high = q_[v], best = static_cast<std::ptrdiff_t>(v);
      if (point_.weights[v] > 0.0 && q_[v] < low) low = q_[v], worst = static_cast<std::ptrdiff_t>(v);
    }
    if (!(high - low > least)) return false;
    const std::int8_t* const to = best == truth ? truth_.data() : signs(static_cast<std::size_t>(best));
    const std::int8_t* const from = worst == truth ? truth_.data() : signs(static_cast<std::size_t>(worst));
    double& to_weight = best == truth ? truth_weight_ : point_.weights[static_cast<std::size_t>(best)];
    double& from_weight = worst == truth ? truth_weight_ : point_.weights[static_cast<std::size_t>(worst)];
    const std::vector<double>& omega = oracle_.omega();
    double distance = 0.0;
    for (Index r = 0; r < count_; ++r) {
      const double difference = static_cast<double>(to[r] - from[r]);
      distance += omega[static_cast<std::size_t>(r)] * difference * difference;
    }
    const double amount = std::min(from_weight, (high - low) / std::max(curvature_ * distance, 1e-300));
    from_weight = amount < from_weight ? from_weight - amount : 0.0;
    to_weight += amount;
    for (Index r = 0; r < count_; ++r) {
      const double change = curvature_ * amount * static_cast<double>(from[r] - to[r]);
      z[r] += change;
      g_[static_cast<std::size_t>(r)] += omega[static_cast<std::size_t>(r)] * change;
    }
    score();
    return true;
  }

  /// Forgets vertices without weight.
  void prune() {
    std::size_t kept = 0;
    for (std::size_t v = 0; v < point_.weights.size(); ++v) {
      if (point_.weights[v] <= 0.0) continue;
      if (kept < v) {
        point_.weights[kept] = point_.weights[v];
        point_.losses[kept] = point_.losses[v];
        std::copy_n(signs(v), count_, point_.signs.begin() + static_cast<Index>(kept) * count_);
      }
      ++kept;
    }
    point_.weights.resize(kept);
    point_.losses.resize(kept);
    point_.signs.resize(kept * static_cast<std::size_t>(count_));
  }

  static constexpr double least_gap_ = 1e-14;

  const VertexOracle& oracle_;
  Index row_;
  double cost_;
  double curvature_;
  Index count_;
  VertexWeights& point_;
  std::vector<std::int8_t> truth_, found_;
  std::vector<double> g_, q_;
  double own_ = 0.0;  ///< g . s_i0
  double truth_weight_ = 0.0;
};

class Maximization {
 public:
  Maximization(const VertexOracle& oracle, MultiplierProducts& products, const std::vector<double>& costs, double bias,
               std::vector<VertexWeights>& point, const Execution& execution)
      : oracle_(oracle),
        products_(products),
        costs_(costs),
        bias_(bias * bias),
        point_(point),
        execution_(execution),
        n_(products.rows()),
        count_(static_cast<Index>(oracle.omega().size())),
        diag_(static_cast<std::size_t>(n_)),
        gaps_(static_cast<std::size_t>(n_), std::numeric_limits<double>::infinity()),
        sums_(static_cast<std::size_t>(count_)),
        z_(batch_rows, count_),
        changes_(batch_rows, count_),
        among_(batch_rows, batch_rows) {
    products.diag(diag_.data());
  }

  std::vector<double>& gaps() { return gaps_; }

  /// Visits rows one after the other.
  void visit(const std::vector<Index>& rows) {
    for (std::size_t first = 0; first < rows.size(); first += batch_rows) {
      const std::vector<Index> batch(rows.begin() + static_cast<Index>(first),
                                     rows.begin() + static_cast<Index>(std::min(rows.size(), first + batch_rows)));
      const Index count = static_cast<Index>(batch.size());
      const DenseView<double> z(z_.data(), count, count_), changes(changes_.data(), count, count_);
      const DenseView<double> among(among_.data(), count, count, batch_rows);
      products_.products(batch, z, among, execution_);
      add_bias(z);
      for (Index b = 0; b < count; ++b) step_row(batch, b, z, among, changes);
      products_.add(batch, changes, execution_);
    }
  }

  /// The gap of every row, and the objective, from the weights of the vertices alone.
  void certify(ConditionalGradientResult& result) {
    products_.clear();
    std::fill(sums_.begin(), sums_.end(), 0.0);
    each_batch([&](const std::vector<Index>& batch, DenseView<double> changes) {
      multipliers(batch, changes);
      for (Index b = 0; b < changes.rows; ++b) {
        for (Index r = 0; r < count_; ++r) sums_[static_cast<std::size_t>(r)] += changes.row(b)[r];
      }
      products_.add(batch, changes, execution_);
    });
    double squares = 0.0, losses = 0.0, gap = 0.0;
    std::vector<double> largest(static_cast<std::size_t>(n_));
    each_batch([&](const std::vector<Index>& batch, DenseView<double> changes) {
      const DenseView<double> z(z_.data(), changes.rows, count_);
      products_.products(batch, z, {}, execution_);
      add_bias(z);
      multipliers(batch, changes);
      parallel_for(changes.rows, execution_, [&](Index b) {
        const auto i = static_cast<std::size_t>(batch[static_cast<std::size_t>(b)]);
        if (costs_[i] <= 0.0) {
          gaps_[i] = largest[i] = 0.0;
          return;
        }
        RowAscent row(oracle_, static_cast<Index>(i), costs_[i], diag_[i] + bias_, point_[i]);
        gaps_[i] = costs_[i] * row.gap_at(z.row(b), &largest[i]);
      });
      for (Index b = 0; b < changes.rows; ++b) {
        const auto i = static_cast<std::size_t>(batch[static_cast<std::size_t>(b)]);
        for (Index r = 0; r < count_; ++r) {
          squares += oracle_.omega()[static_cast<std::size_t>(r)] * changes.row(b)[r] * z.row(b)[r];
        }
        losses += costs_[i] * largest[i];
        gap += gaps_[i];
      }
    });
    result.objective = 0.5 * squares + losses;
    result.sums = sums_;
    result.gap = std::max(gap, 0.0);
  }

 private:
  void add_bias(DenseView<double> z) const {
    if (bias_ == 0.0) return;
    for (Index b = 0; b < z.rows; ++b) {
      for (Index r = 0; r < count_; ++r) z.row(b)[r] += bias_ * sums_[static_cast<std::size_t>(r)];
    }
  }

  void step_row(const std::vector<Index>& batch, Index b, DenseView<double> z, DenseView<double> among,
                DenseView<double> changes) {
    const auto i = static_cast<std::size_t>(batch[static_cast<std::size_t>(b)]);
    double* const change = changes.row(b);
    std::fill_n(change, count_, 0.0);
    const double curvature = diag_[i] + bias_;
    if (costs_[i] <= 0.0) {
      gaps_[i] = 0.0;
      return;
    }
    RowAscent row(oracle_, static_cast<Index>(i), costs_[i], curvature, point_[i]);
    before_.resize(static_cast<std::size_t>(count_));
    row.multipliers(before_.data());
    gaps_[i] = row.ascend(z.row(b));
    row.multipliers(change);
    moved_.clear();
    for (Index r = 0; r < count_; ++r) {
      change[r] -= before_[static_cast<std::size_t>(r)];
      if (change[r] != 0.0) moved_.push_back(r);
    }
    if (moved_.empty()) return;
    for (const Index r : moved_) sums_[static_cast<std::size_t>(r)] += change[r];
    for (Index later = b + 1; later < z.rows; ++later) {
      const double k = among.row(b)[later] + bias_;
      if (k == 0.0) continue;
      for (const Index r : moved_) z.row(later)[r] += k * change[r];
    }
  }

  void multipliers(const std::vector<Index>& batch, DenseView<double> out) const {
    for (Index b = 0; b < out.rows; ++b) {
      const auto i = static_cast<std::size_t>(batch[static_cast<std::size_t>(b)]);
      RowAscent(oracle_, static_cast<Index>(i), costs_[i], 0.0, point_[i]).multipliers(out.row(b));
    }
  }

  template <class Body>
  void each_batch(const Body& body) {
    std::vector<Index> batch;
    for (Index first = 0; first < n_; first += batch_rows) {
      batch.resize(static_cast<std::size_t>(std::min(batch_rows, n_ - first)));
      std::iota(batch.begin(), batch.end(), first);
      body(batch, DenseView<double>(changes_.data(), static_cast<Index>(batch.size()), count_));
    }
  }

  const VertexOracle& oracle_;
  MultiplierProducts& products_;
  const std::vector<double>& costs_;
  double bias_;
  std::vector<VertexWeights>& point_;
  const Execution& execution_;
  Index n_, count_;
  std::vector<double> diag_;
  std::vector<double> gaps_;  ///< C_i times the gap of every row when it was seen last, before its steps
  std::vector<double> sums_;  ///< of the multipliers
  Matrix<double> z_, changes_, among_;
  std::vector<double> before_;
  std::vector<Index> moved_;
};

}  // namespace

ConditionalGradientResult maximize_over_vertices(const VertexOracle& oracle, MultiplierProducts& products,
                                                 const std::vector<double>& costs, double bias,
                                                 const ConditionalGradientSettings& settings,
                                                 std::vector<VertexWeights>& point, const Execution& execution) {
  const auto begin = std::chrono::steady_clock::now();
  require(std::isfinite(settings.tolerance) && settings.tolerance > 0.0, "tol is ", settings.tolerance,
          ", expected a finite number above zero");
  require(settings.max_iterations >= 1, "max_iter is ", settings.max_iterations, ", expected at least 1");
  const Index n = products.rows();
  std::mt19937_64 random(settings.seed);
  Maximization work(oracle, products, costs, bias, point, execution);
  ConditionalGradientResult result;
  work.certify(result);
  std::vector<Index> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), Index{0});
  std::vector<Index> rows;
  double target = safety * settings.tolerance;
  double best = result.gap;
  int since_all = working_passes, without_progress = 0;
  bool certified = true;
  const auto report = [&] {
    if (execution.monitor == nullptr) return;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    execution.monitor->progress({result.iterations, static_cast<int>(result.passes), result.objective,
                                 result.gap / std::max(result.objective, std::numeric_limits<double>::min()), seconds});
    if (execution.monitor->stopped()) throw Interrupted();
  };
  const auto converged = [&] { return certified && result.gap <= settings.tolerance * result.objective; };
  while (!converged() && result.iterations < settings.max_iterations) {
    ++result.iterations;
    const std::vector<double>& gaps = work.gaps();
    double met = std::accumulate(gaps.begin(), gaps.end(), 0.0);
    const bool whole = since_all >= working_passes || !std::isfinite(met);
    rows.clear();
    const double least = whole ? -1.0 : working_share * met / static_cast<double>(n);
    std::copy_if(all.begin(), all.end(), std::back_inserter(rows),
                 [&](Index i) { return gaps[static_cast<std::size_t>(i)] > least; });
    since_all = whole ? 0 : since_all + 1;
    for (std::size_t k = rows.size(); k > 1; --k) std::swap(rows[k - 1], rows[random() % k]);
    work.visit(rows);
    result.passes += static_cast<double>(rows.size()) / static_cast<double>(std::max<Index>(n, 1));
    met = std::accumulate(gaps.begin(), gaps.end(), 0.0);
    result.gap = met;
    certified = met <= target * result.objective;
    if (certified) work.certify(result);
    report();
    if (!certified) continue;
    // What passes meet is out of date, so ask more of them before the next certificate.
    target *= 0.7;
    since_all = working_passes;
    without_progress = result.gap < 0.95 * best ? 0 : without_progress + 1;
    best = std::min(best, result.gap);
    if (without_progress >= patience) break;
  }
  if (!certified) work.certify(result);
  certified = true;
  if (converged()) {
    result.status = Status::converged;
  } else if (without_progress >= patience) {
    result.status = Status::stalled;
  }
  return result;
}

}  // namespace taxolearn
