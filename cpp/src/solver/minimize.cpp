#include "taxolearn/solver/minimize.hpp"

#include <algorithm>
#include <cmath>
#include <deque>

#include "taxolearn/base/vector.hpp"

namespace taxolearn {
namespace {

constexpr double slope_reduction = 0.2;
constexpr double worth = 1e-3;  // objective must fall by this share of the tolerance to count as progress
constexpr int line_search_steps = 30;
constexpr double line_search_growth = 10.0;

/// Of a combination of slots.
using Coefficients = std::vector<double>;

Coefficients unit(int slots, int k, double value = 1.0) {
  Coefficients c(static_cast<std::size_t>(slots), 0.0);
  c[static_cast<std::size_t>(k)] = value;
  return c;
}

void add(double a, const Coefficients& x, Coefficients& y) {
  axpy_block(a, x.data(), y.data(), static_cast<Index>(y.size()));
}

/// Inner products between slots, kept up to date as slots change.
class Gram {
 public:
  explicit Gram(int slots) : values_(slots, slots), filled_(static_cast<std::size_t>(slots), 0) {}

  /// The slot was written anew: ask the space for its row.
  void measure(SearchSpace& space, int slot) {
    filled_[static_cast<std::size_t>(slot)] = 1;
    std::vector<int> others;
    for (int k = 0; k < values_.rows(); ++k) {
      if (filled_[static_cast<std::size_t>(k)] != 0) others.push_back(k);
    }
    const std::vector<double> row = space.inner(slot, others);
    for (std::size_t k = 0; k < others.size(); ++k) {
      values_.row(slot)[others[k]] = row[k];
      values_.row(others[k])[slot] = row[k];
    }
  }

  /// The slot became the combination c: its row follows from the others, without touching a vector.
  void combine(int slot, const Coefficients& c) {
    const Coefficients row = times(c);
    const double square = dot_block(c.data(), row.data(), values_.rows());
    for (Index k = 0; k < values_.rows(); ++k) {
      values_.row(slot)[k] = values_.row(k)[slot] = row[static_cast<std::size_t>(k)];
    }
    values_.row(slot)[slot] = square;
    filled_[static_cast<std::size_t>(slot)] = 1;
  }

  double operator()(const Coefficients& a, const Coefficients& b) const {
    return dot_block(a.data(), times(b).data(), values_.rows());
  }
  double operator()(int a, int b) const { return values_.row(a)[b]; }

 private:
  Coefficients times(const Coefficients& c) const {
    Coefficients out;
    for (Index k = 0; k < values_.rows(); ++k) out.push_back(dot_block(values_.row(k), c.data(), values_.cols()));
    return out;
  }

  Matrix<double> values_;
  std::vector<char> filled_;
};

/// One step of L-BFGS: s = step * slot(direction), y = slot(after) - slot(before).
struct Pair {
  int direction;
  double step;
  int before;
  int after;
};

/// Inverse of the space's preconditioner times a combination of slots, put into the last slot.
Coefficients solved(SearchSpace& space, Gram& gram, const Coefficients& q) {
  const int slots = static_cast<int>(q.size());
  space.solve_preconditioner(q, slots - 1);
  gram.measure(space, slots - 1);
  return unit(slots, slots - 1);
}

/// y . (inverse of the preconditioner) y for a pair; the last slot is scratch.
double solved_square(SearchSpace& space, const Coefficients& y, const Pair& pair) {
  const int scratch = static_cast<int>(y.size()) - 1;
  space.solve_preconditioner(y, scratch);
  const std::vector<double> products = space.inner(scratch, {pair.after, pair.before});
  return products[0] - products[1];
}

/// d = -H g by the two-loop recursion, on coefficients over slots. It starts from the inverse of the space's
/// preconditioner, else the identity, scaled to agree with the last pair.
Coefficients two_loop(SearchSpace& space, Gram& gram, const std::deque<Pair>& pairs, int gradient, int slots) {
  const auto s = [&](const Pair& pair) { return unit(slots, pair.direction, pair.step); };
  const auto y = [&](const Pair& pair) {
    Coefficients difference = unit(slots, pair.after);
    add(-1.0, unit(slots, pair.before), difference);
    return difference;
  };
  Coefficients q = unit(slots, gradient, -1.0);
  if (pairs.empty()) return space.has_preconditioner() ? solved(space, gram, q) : q;
  std::vector<double> a(pairs.size());
  for (std::size_t k = pairs.size(); k-- > 0;) {
    a[k] = gram(s(pairs[k]), q) / gram(s(pairs[k]), y(pairs[k]));
    add(-a[k], y(pairs[k]), q);
  }
  const Pair& last = pairs.back();
  const double square = space.has_preconditioner() ? solved_square(space, y(last), last) : gram(y(last), y(last));
  const double scale = gram(s(last), y(last)) / square;
  if (space.has_preconditioner()) q = solved(space, gram, q);
  for (double& value : q) value *= scale;
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    const double b = gram(y(pairs[k]), q) / gram(s(pairs[k]), y(pairs[k]));
    add(a[k] - b, s(pairs[k]), q);
  }
  return q;
}

/// The Hessian changes most in the first iterations.
bool renews(int iteration) { return iteration == 0 || (iteration >= 4 && (iteration & (iteration - 1)) == 0); }

MinimizeResult start(SearchSpace& space, Gram& gram, int gradient) {
  MinimizeResult result;
  result.objective = space.advance(0.0, gradient);
  gram.measure(space, gradient);
  result.gap = 0.5 * gram(gradient, gradient);
  return result;
}

/// Move along the direction and take the new gradient: the part that both methods share. False if there is no step.
bool take_step(SearchSpace& space, Gram& gram, double step, int gradient, MinimizeResult& result) {
  if (step == 0.0) return false;
  result.objective = space.advance(step, gradient);
  gram.measure(space, gradient);
  result.gap = 0.5 * gram(gradient, gradient);
  ++result.iterations;
  return true;
}

}  // namespace

const char* status_name(Status status) {
  switch (status) {
    case Status::converged:
      return "converged";
    case Status::max_iter:
      return "max_iter";
    case Status::stalled:
      return "stalled";
  }
  return "unknown";
}

bool Convergence::done(MinimizeResult& result) {
  if (!std::isfinite(result.gap) || !std::isfinite(result.objective)) {
    result.status = Status::stalled;
    return true;
  }
  const double allowed = settings_.tolerance * std::abs(result.objective);
  if (result.gap <= allowed) {  // a squared norm below zero: rounding if it is small, else not a norm
    result.status = result.gap >= -allowed ? Status::converged : Status::stalled;
    return true;
  }
  const double worth_counting = worth * settings_.tolerance * std::abs(result.objective);
  if (result.gap < best_gap_ || result.objective < best_objective_ - worth_counting) {
    best_gap_ = std::min(best_gap_, result.gap);
    best_objective_ = std::min(best_objective_, result.objective);
    without_progress_ = 0;
  } else if (++without_progress_ >= settings_.patience) {
    result.status = Status::stalled;
    return true;
  }
  if (result.iterations >= settings_.max_iterations) {
    result.status = Status::max_iter;
    return true;
  }
  return false;
}

double line_search(SearchSpace& space, double slope_at_zero, double start) {
  if (!(slope_at_zero < 0.0)) return 0.0;
  double low = 0.0;    // slope < 0 here
  double high = -1.0;  // slope > 0 here, once known
  double step = start;
  for (int k = 0; k < line_search_steps; ++k) {
    const LineValue point = space.line(step);
    if (!std::isfinite(point.slope) || !std::isfinite(point.value)) {
      high = step;
      step = 0.5 * (low + high);
      continue;
    }
    if (std::abs(point.slope) <= slope_reduction * std::abs(slope_at_zero)) return step;
    (point.slope < 0.0 ? low : high) = step;
    double next = step - point.slope / point.curvature;
    if (high < 0.0) {
      if (!(next > low) || next > line_search_growth * low) next = line_search_growth * low;
    } else if (!(next > low) || !(next < high)) {
      next = 0.5 * (low + high);
    }
    step = next;
  }
  return low;
}

int lbfgs_slots(int history) { return 2 * history + 1; }

MinimizeResult lbfgs(SearchSpace& space, const MinimizeSettings& settings, const Report& report) {
  // Slots 0 .. m-1 hold directions, m .. 2m gradients, both used in turn; the slot that a new vector takes
  // belongs to the pair that leaves the history at that moment.
  const int m = settings.history;
  const int slots = lbfgs_slots(m) + (space.has_preconditioner() ? 1 : 0);
  Gram gram(slots);
  std::deque<Pair> pairs;
  Convergence convergence(settings);
  int gradient = m;
  MinimizeResult result = start(space, gram, gradient);
  for (int k = 0; !convergence.done(result); ++k) {
    if (space.has_preconditioner() && renews(k)) space.renew_preconditioner();
    Coefficients c = two_loop(space, gram, pairs, gradient, slots);
    const auto slope_of = [&] { return gram(c, unit(slots, gradient)); };
    if (!(slope_of() < 0.0)) {  // lost to rounding: start the history again
      pairs.clear();
      c = two_loop(space, gram, pairs, gradient, slots);
    }
    const double slope = slope_of();
    const int direction = k % m;
    const int next = m + (gradient - m + 1) % (m + 1);
    space.combine(c, direction);
    gram.combine(direction, c);
    if (static_cast<int>(pairs.size()) == m) pairs.pop_front();
    const bool scaled = !pairs.empty() || space.has_preconditioner();
    const double step = line_search(space, slope, scaled ? 1.0 : -slope / space.line(0.0).curvature);
    if (!take_step(space, gram, step, next, result)) {
      result.status = Status::stalled;
      return result;
    }
    pairs.push_back({direction, step, gradient, next});
    gradient = next;
    const double curvature = gram(direction, next) - gram(direction, pairs.back().before);
    if (!(step * curvature > 0.0)) pairs.clear();
    report(result);
  }
  return result;
}

MinimizeResult nonlinear_cg(SearchSpace& space, const MinimizeSettings& settings, const Report& report) {
  constexpr int direction = 0;
  Gram gram(nonlinear_cg_slots);
  Convergence convergence(settings);
  int gradient = 1;
  int previous = 2;
  MinimizeResult result = start(space, gram, gradient);
  double slope = 0.0;
  double beta = 0.0;
  while (!convergence.done(result)) {
    Coefficients c = unit(nonlinear_cg_slots, gradient, -1.0);
    c[direction] = beta;
    slope = gram(c, unit(nonlinear_cg_slots, gradient));
    if (!(slope < 0.0)) {
      c[direction] = 0.0;
      slope = -gram(gradient, gradient);
    }
    space.combine(c, direction);
    gram.combine(direction, c);
    const double newton_step = -slope / space.line(0.0).curvature;
    const double step = settings.quadratic ? newton_step : line_search(space, slope, newton_step);
    if (!take_step(space, gram, step, previous, result)) {
      result.status = Status::stalled;
      return result;
    }
    std::swap(gradient, previous);
    const double before = gram(previous, previous);
    beta = std::max(0.0, (gram(gradient, gradient) - gram(gradient, previous)) / before);
    report(result);
  }
  return result;
}

}  // namespace taxolearn
