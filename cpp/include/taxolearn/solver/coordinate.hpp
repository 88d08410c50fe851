// Dual coordinate descent for hinge losses, on several binary problems at once.
//
// Problem l is one class against the rest. With y_il = +-1, costs C_il and weights w_l = o_l + v_l a_l, where
// a_l = sum_i alpha_il y_il x_i, it looks for the dual variables that maximize
//
//   sum_i alpha_il (1 - y_il o_l . x_i) - 1/2 v_l |a_l|^2 [- sum_i alpha_il^2 / (4 C_il)],   0 <= alpha_il [<= C_il],
//
// with the terms in brackets for the squared hinge max(0, 1 - y u)^2 and the hinge max(0, 1 - y u). Offsets o_l and
// variances v_l are given (zero and one: as Hsieh et al. 2008 have it).
//
// The problems lie side by side, "in lanes": weights are d x lanes and dual variables n x lanes, row-major. So one visit
// of a row reads its features once, and a line of the cache per feature, for all lanes; problems apart would read as much
// for one of them.
#pragma once

#include <cstdint>
#include <vector>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"
#include "taxolearn/data/input.hpp"

namespace taxolearn {

enum class Hinge {
  hinge,    ///< max(0, 1 - y u)
  squared,  ///< max(0, 1 - y u)^2
};

constexpr Index most_lanes = 32;

/// Numbers per row of weights and dual variables: that of the lanes, rounded up to what the registers like.
constexpr Index lane_width(Index lanes) { return lanes <= 8 ? 8 : lanes <= 16 ? 16 : most_lanes; }

struct LaneProblem {
  InputView X;        ///< n x d, one matrix
  double bias = 0.0;  ///< value of one more feature of every row; 0: there is none
  Hinge loss = Hinge::hinge;
  const double* squared_norms = nullptr;     ///< |x_i|^2 + bias^2, n
  const double* costs = nullptr;             ///< n; C_il is this times a factor of the lane
  const std::uint32_t* positives = nullptr;  ///< bit l of element i tells whether y_il = 1, n
  std::vector<double> positive_factors;      ///< of rows with y_il = 1, per lane
  std::vector<double> negative_factors;      ///< of the others
  std::vector<double> variances;             ///< v_l, per lane

  Index lanes() const { return static_cast<Index>(variances.size()); }
  Index width() const { return lane_width(lanes()); }
};

struct LaneSettings {
  double tolerance = 1e-3;  ///< on the gap relative to the objective, both as the passes meet them
  int max_passes = 1000;
  std::uint64_t seed = 0;  ///< of the order of rows
};

/// What the descent works on; whoever calls it sets weights to w and duals to alpha before.
template <class T>
struct LaneWorkspace {
  Buffer<T> weights;                ///< (d + 1) x width, the last row for the bias
  Buffer<T> duals;                  ///< n x width
  std::vector<std::int32_t> order;  ///< rows, those that are visited first
};

struct LaneResult {
  bool converged = false;
  int passes = 0;
  Index visits = 0;  ///< of rows
  double gap =
      0.0;  ///< sum of the terms of the duality gap, each when its row was visited last in a pass over all rows
  double objective = 0.0;  ///< of the primal, met in the same way
};

/// Passes over the rows in random order. Rows whose dual variables are all at bounds which they are not about to leave
/// are left out, until the others have converged.
template <class T>
LaneResult descend(const LaneProblem& problem, const LaneSettings& settings, LaneWorkspace<T>& workspace,
                   const Execution& execution);

/// W[:, l] += sum_i y_il alpha_il x_i, of duals (n x width) and W ((d + 1) x width).
template <class T>
void add_dual_rows(const LaneProblem& problem, const T* duals, double* W);

}  // namespace taxolearn
