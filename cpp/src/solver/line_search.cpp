#include "taxolearn/solver/line_search.hpp"

#include <algorithm>
#include <cmath>

namespace taxolearn {
namespace {

constexpr double slope_reduction = 0.2;
constexpr int line_search_steps = 30;
constexpr double line_search_growth = 10.0;

}  // namespace

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

}  // namespace taxolearn
