#include "taxolearn/solver/nonlinear_cg.hpp"

#include <algorithm>
#include <cmath>

#include "slots.hpp"
#include "taxolearn/solver/line_search.hpp"

namespace taxolearn {

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
