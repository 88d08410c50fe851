#include "taxolearn/solver/coordinate.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <type_traits>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/packets.hpp"

namespace taxolearn {
namespace {

template <class T, int B>
using Lanes = Eigen::Array<T, B, 1>;
template <class T, int B>
using LaneMap = Eigen::Map<Lanes<T, B>, Eigen::Aligned64>;
template <class T, int B>
using ConstLaneMap = Eigen::Map<const Lanes<T, B>, Eigen::Aligned64>;

/// out = sum_k x_k W[k], over the entries of row i.
template <class T, int B, class V, class I>
void dot_row(const SparseView<V, I>& X, Index i, const T* W, Lanes<T, B>& out) {
  Lanes<T, B> even = Lanes<T, B>::Zero(), odd = Lanes<T, B>::Zero();
  I k = X.offsets[i];
  const I end = X.offsets[i + 1];
  const auto row = [&](I at) { return ConstLaneMap<T, B>(W + static_cast<Index>(X.columns[at]) * B); };
  for (; k + 2 <= end; k += 2) {
    even += static_cast<T>(X.values[k]) * row(k);
    odd += static_cast<T>(X.values[k + 1]) * row(k + 1);
  }
  if (k < end) even += static_cast<T>(X.values[k]) * row(k);
  out = even + odd;
}

template <class T, int B, class V>
void dot_row(const DenseView<V>& X, Index i, const T* W, Lanes<T, B>& out) {
  Lanes<T, B> even = Lanes<T, B>::Zero(), odd = Lanes<T, B>::Zero();
  const V* const x = X.row(i);
  Index k = 0;
  for (; k + 2 <= X.cols; k += 2) {
    even += static_cast<T>(x[k]) * ConstLaneMap<T, B>(W + k * B);
    odd += static_cast<T>(x[k + 1]) * ConstLaneMap<T, B>(W + (k + 1) * B);
  }
  if (k < X.cols) even += static_cast<T>(x[k]) * ConstLaneMap<T, B>(W + k * B);
  out = even + odd;
}

/// W[k] += x_k step.
template <class T, int B, class V, class I>
void add_row(const SparseView<V, I>& X, Index i, const Lanes<T, B>& step, T* W) {
  const Lanes<T, B> own = step;
  for (I k = X.offsets[i]; k < X.offsets[i + 1]; ++k) {
    LaneMap<T, B>(W + static_cast<Index>(X.columns[k]) * B) += static_cast<T>(X.values[k]) * own;
  }
}

template <class T, int B, class V>
void add_row(const DenseView<V>& X, Index i, const Lanes<T, B>& step, T* W) {
  const V* const x = X.row(i);
  const Lanes<T, B> own = step;
  for (Index k = 0; k < X.cols; ++k) LaneMap<T, B>(W + k * B) += static_cast<T>(x[k]) * own;
}

template <class V, class I>
void prefetch_row(const SparseView<V, I>& X, Index i) {
  const I begin = X.offsets[i];
  prefetch(X.columns + begin);
  prefetch(X.values + begin);
}

template <class V>
void prefetch_row(const DenseView<V>& X, Index i) {
  prefetch(X.row(i));
}

/// Rows of X against weights of B lanes, whatever type X has: functions that were compiled for it, called once per row.
template <class T, int B>
struct RowProducts {
  const void* view;
  void (*dot)(const void*, Index, const T*, Lanes<T, B>&);
  void (*add)(const void*, Index, const Lanes<T, B>&, T*);
  void (*fetch)(const void*, Index);

  template <class View>
  static RowProducts of(const View& X) {
    return {&X,
            [](const void* x, Index i, const T* W, Lanes<T, B>& out) {
              dot_row<T, B>(*static_cast<const View*>(x), i, W, out);
            },
            [](const void* x, Index i, const Lanes<T, B>& step, T* W) {
              add_row<T, B>(*static_cast<const View*>(x), i, step, W);
            },
            [](const void* x, Index i) { prefetch_row(*static_cast<const View*>(x), i); }};
  }
  static RowProducts of(const BlockedView&) {
    require(false, "X has blocks, expected one matrix: put them side by side first");
    return {};
  }
};

template <class T, int B>
RowProducts<T, B> products_of(const InputView& X) {
  return std::visit([](const auto& x) { return RowProducts<T, B>::of(x); }, X);
}

/// What a pass finds.
struct PassResult {
  double gap = 0.0;
  double objective = 0.0;
};

/// The descent on B lanes, of which the last may be empty: these have costs of zero.
template <class T, int B>
class Descent {
 public:
  Descent(const LaneProblem& problem, LaneWorkspace<T>& workspace)
      : problem_(problem), work_(workspace), rows_(products_of<T, B>(problem.X)), d_(input_features(problem.X)) {
    const Index lanes = problem.lanes();
    variances_.setZero();
    positive_.setZero();
    negative_.setZero();
    for (Index l = 0; l < lanes; ++l) {
      positive_(l) = static_cast<T>(problem.positive_factors[static_cast<std::size_t>(l)]);
      negative_(l) = static_cast<T>(problem.negative_factors[static_cast<std::size_t>(l)]);
      variances_(l) = static_cast<T>(problem.variances[static_cast<std::size_t>(l)]);
    }
    forget_thresholds();
  }

  /// Rows whose lanes all stay at their bounds are exchanged with the last active one, if `shrink`.
  PassResult pass(Index& active, bool shrink, std::mt19937_64& random, const Execution& execution) {
    gap_.setZero();
    objective_.setZero();
    highest_.setConstant(-infinity);
    lowest_.setConstant(infinity);
    std::int32_t* const order = work_.order.data();
    for (Index k = active - 1; k > 0; --k) {
      std::swap(order[k], order[static_cast<Index>(random() % static_cast<std::uint64_t>(k + 1))]);
    }
    for (Index k = 0; k < active;) {
      if (k + 2 < active) rows_.fetch(rows_.view, order[k + 2]);
      if (k + 1 < active) prefetch(work_.duals.data() + static_cast<Index>(order[k + 1]) * B);
      const bool settled = visit(order[k]);
      if (settled && shrink) {
        --active;
        std::swap(order[k], order[active]);
      } else {
        ++k;
      }
      if ((k & 1023) == 0 && interrupted(execution)) break;
    }
    for (int l = 0; l < B; ++l) {
      upper_(l) = highest_(l) > T(0) ? highest_(l) : infinity;
      lower_(l) = lowest_(l) < T(0) ? lowest_(l) : -infinity;
    }
    return {gap_.sum(), objective_.sum()};
  }

  void forget_thresholds() {
    upper_.setConstant(infinity);
    lower_.setConstant(-infinity);
  }

 private:
  static constexpr T infinity = std::numeric_limits<T>::infinity();

  /// One step in every lane; true if all lanes are at bounds that they are not about to leave.
  bool visit(Index i) {
    const T cost = static_cast<T>(problem_.costs[i]), norm = static_cast<T>(problem_.squared_norms[i]);
    const auto bits = static_cast<std::uint32_t>(problem_.positives[i]);
    const T bias = static_cast<T>(problem_.bias);
    const bool squared = problem_.loss == Hinge::squared;
    T* const W = work_.weights.data();
    T* const alpha = work_.duals.data() + i * B;
    Lanes<T, B> u;
    rows_.dot(rows_.view, i, W, u);
    if (bias != T(0)) u += bias * ConstLaneMap<T, B>(W + d_ * B);

    alignas(64) T sign[B], step[B];
    int moving = 0, unsettled = 0;
#pragma omp simd reduction(+ : moving, unsettled)
    for (int l = 0; l < B; ++l) {
      const bool is_positive = ((bits >> l) & 1u) != 0;
      const T y = is_positive ? T(1) : T(-1);
      const T C = cost * (is_positive ? positive_(l) : negative_(l));
      // Rounded down, so that no dual variable exceeds what it may be in exact arithmetic.
      const T U = squared && C > T(0) ? infinity : C * (T(1) - T(2) * std::numeric_limits<T>::epsilon());
      const T r = squared && C > T(0) ? T(0.5) / C : T(0);
      const T a = alpha[l];
      const T slack = T(1) - y * u(l);
      const T G = r * a - slack;
      const T curvature = std::max(norm * variances_(l) + r, std::numeric_limits<T>::min());
      const T next = std::min(std::max(a - G / curvature, T(0)), U);
      const T projected = a <= T(0) ? std::min(G, T(0)) : a >= U ? std::max(G, T(0)) : G;
      const T positive_slack = std::max(slack, T(0));
      const T loss = squared ? C * positive_slack * positive_slack : C * positive_slack;
      gap_(l) += static_cast<double>(loss - a * slack + T(0.5) * r * a * a);
      objective_(l) += static_cast<double>(loss + T(0.5) * a * (T(1) - slack));
      highest_(l) = std::max(highest_(l), projected);
      lowest_(l) = std::min(lowest_(l), projected);
      const bool settled = (a <= T(0) && G > upper_(l)) || (a >= U && G < lower_(l)) || C <= T(0);
      sign[l] = y;
      step[l] = next - a;
      moving += next != a ? 1 : 0;
      unsettled += settled ? 0 : 1;
    }
    if (moving == 0) return unsettled == 0;
    Lanes<T, B> change;
#pragma omp simd
    for (int l = 0; l < B; ++l) {
      alpha[l] += step[l];
      change(l) = sign[l] * step[l] * variances_(l);
    }
    rows_.add(rows_.view, i, change, W);
    if (bias != T(0)) LaneMap<T, B>(W + d_ * B) += bias * change;
    return unsettled == 0;
  }

  const LaneProblem& problem_;
  LaneWorkspace<T>& work_;
  RowProducts<T, B> rows_;
  Index d_;
  Lanes<T, B> variances_, positive_, negative_;
  Lanes<double, B> gap_, objective_;
  Lanes<T, B> highest_, lowest_;  // projected gradients of this pass
  Lanes<T, B> upper_, lower_;     // those of the pass before it: gradients beyond them are far from zero
};

template <class T, int B>
LaneResult descend_lanes(const LaneProblem& problem, const LaneSettings& settings, LaneWorkspace<T>& workspace,
                         const Execution& execution) {
  Descent<T, B> descent(problem, workspace);
  std::mt19937_64 random(settings.seed);
  const Index n = input_rows(problem.X);
  workspace.order.resize(static_cast<std::size_t>(n));
  std::iota(workspace.order.begin(), workspace.order.end(), 0);
  LaneResult result;
  Index active = n;
  while (result.passes < settings.max_passes && !interrupted(execution)) {
    const bool all = active == n;
    result.visits += active;
    const PassResult found = descent.pass(active, true, random, execution);
    ++result.passes;
    if (all) {
      result.gap = found.gap;
      result.objective = found.objective;
    }
    if (found.gap > settings.tolerance * result.objective) continue;
    result.converged = all;
    if (all) break;
    active = n;
    descent.forget_thresholds();
  }
  return result;
}

template <int B, class T>
void add_dual_lanes(const LaneProblem& problem, const T* duals, double* W) {
  const RowProducts<double, B> rows = products_of<double, B>(problem.X);
  const Index n = input_rows(problem.X), d = input_features(problem.X);
  for (Index i = 0; i < n; ++i) {
    const ConstLaneMap<T, B> alpha(duals + i * B);
    if ((alpha == T(0)).all()) continue;
    Lanes<double, B> step = alpha.template cast<double>();
    for (int l = 0; l < B; ++l) {
      if (((problem.positives[i] >> l) & 1u) == 0) step(l) = -step(l);
    }
    rows.add(rows.view, i, step, W);
    LaneMap<double, B>(W + d * B) += problem.bias * step;
  }
}

/// Calls body with the width as a constant.
template <class Body>
auto with_width(Index width, const Body& body) {
  if (width == 8) return body(std::integral_constant<int, 8>{});
  if (width == 16) return body(std::integral_constant<int, 16>{});
  return body(std::integral_constant<int, 32>{});
}

}  // namespace

template <class T>
LaneResult descend(const LaneProblem& problem, const LaneSettings& settings, LaneWorkspace<T>& workspace,
                   const Execution& execution) {
  return with_width(problem.width(),
                    [&](auto width) { return descend_lanes<T, width()>(problem, settings, workspace, execution); });
}

template <class T>
void add_dual_rows(const LaneProblem& problem, const T* duals, double* W) {
  with_width(problem.width(), [&](auto width) { add_dual_lanes<width()>(problem, duals, W); });
}

#define TAXOLEARN_INSTANTIATE(T)                                                                                \
  template LaneResult descend<T>(const LaneProblem&, const LaneSettings&, LaneWorkspace<T>&, const Execution&); \
  template void add_dual_rows<T>(const LaneProblem&, const T*, double*);
TAXOLEARN_INSTANTIATE(float)
TAXOLEARN_INSTANTIATE(double)
#undef TAXOLEARN_INSTANTIATE

}  // namespace taxolearn
