#include "taxolearn/solver/lbfgs.hpp"

#include <algorithm>
#include <cmath>
#include <deque>

#include "slots.hpp"
#include "taxolearn/solver/line_search.hpp"

namespace taxolearn {
namespace {

// More pairs save few iterations on text (59, 53, 56, 55 and 53 with 1, 2, 3, 5 and 10 of them on 20 newsgroups) but
// each costs a pass over two n x C arrays; on smaller vectors they cost next to nothing.
constexpr int fewest_pairs = 2;
constexpr int most_pairs = 20;

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

}  // namespace

int lbfgs_history(double relative_size) {
  // As many as take the memory, in double precision, that the fewest take with n x C and images in single precision.
  return std::clamp(static_cast<int>(fewest_pairs / std::max(relative_size, 1e-3)), fewest_pairs, most_pairs);
}

int lbfgs_slots(int history) { return 2 * history + 1; }

double lbfgs_bytes(Index numbers_per_slot, int history, bool preconditioned) {
  const int slots = lbfgs_slots(history) + (preconditioned ? 1 : 0);
  return static_cast<double>(sizeof(double)) * slots * static_cast<double>(numbers_per_slot);
}

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

}  // namespace taxolearn
