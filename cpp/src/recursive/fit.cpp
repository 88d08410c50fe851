#include "taxolearn/recursive/fit.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "certificate.hpp"
#include "class_blocks.hpp"
#include "sweep.hpp"
#include "taxolearn/base/check.hpp"

namespace taxolearn {
namespace {

constexpr double single_tolerance = 1e-5;  // below it, single precision is not enough
constexpr double safety = 0.8;             // of the tolerance, for what sweeps find on their way
constexpr int patience = 5;                // certificates without progress

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

RecursiveResult fit_recursive(const RecursiveProblem& problem, const RecursiveSettings& settings,
                              const std::vector<SparseColumn>* start, const Execution& execution) {
  const auto begin = std::chrono::steady_clock::now();
  require(std::isfinite(settings.tolerance) && settings.tolerance > 0.0, "tol is ", settings.tolerance,
          ", expected a finite number above zero");
  require(settings.max_iterations >= 1, "max_iter is ", settings.max_iterations, ", expected at least 1");
  const ClassBlocks blocks(problem);
  RecursiveResult result;
  std::vector<SparseColumn> duals(static_cast<std::size_t>(blocks.rows()));
  if (start != nullptr) duals = transposed(blocks.feasible(*start), blocks.rows());
  const bool coupled = problem.taxonomy != nullptr || problem.graph != nullptr;
  const bool joint = settings.method == RecursiveMethod::joint || !coupled;
  const std::unique_ptr<Sweeps> sweeps =
      !joint    ? alternating_sweeps(blocks, duals, execution)
      : coupled ? is_narrow(blocks) ? narrow_sweeps(blocks, duals) : joint_sweeps(blocks, duals)
                : separate_sweeps(blocks, duals, execution);

  SweepSettings sweep{settings.tolerance >= single_tolerance, safety * settings.tolerance, settings.seed};
  Certificate certificate;
  bool certified = start != nullptr;
  // A start may be good enough as it is, and single precision could not repeat it.
  if (certified) {
    certificate = certify(blocks, duals, execution);
    if (certificate.gap <= settings.tolerance * certificate.objective) result.status = Status::converged;
  }
  double best = std::numeric_limits<double>::infinity();
  int without_progress = 0;
  while (result.status != Status::converged && result.iterations < settings.max_iterations) {
    ++result.iterations;
    sweep.seed += 0x9e3779b97f4a7c15u;
    const SweepResult found = sweeps->sweep(sweep, execution);
    result.passes += found.visits / (static_cast<double>(blocks.rows()) * static_cast<double>(problem.classes));
    // Leaves alone do not tell how far the alternation is from the optimum.
    certified = !joint || found.gap <= sweep.tolerance * found.objective;
    if (certified) certificate = certify(blocks, sweeps->duals(), execution);
    const double gap = certified ? certificate.gap : found.gap;
    const double objective = certified ? certificate.objective : found.objective;
    if (execution.monitor != nullptr) {
      execution.monitor->progress({result.iterations, static_cast<int>(result.passes), objective,
                                   gap / std::max(objective, std::numeric_limits<double>::min()),
                                   seconds_since(begin)});
      if (execution.monitor->stopped()) throw Interrupted();
    }
    if (!certified) continue;
    if (gap <= settings.tolerance * objective) {
      result.status = Status::converged;
      break;
    }
    without_progress = gap < 0.9 * best ? 0 : without_progress + 1;
    best = std::min(best, gap);
    if (joint && without_progress >= patience) {
      result.status = Status::stalled;
      break;
    }
    if (joint && !sweep.single) sweep.tolerance *= 0.5;
    if (joint || without_progress > 0) sweep.single = false;
  }
  if (!certified) certificate = certify(blocks, sweeps->duals(), execution);
  result.objective = certificate.objective;
  result.gap = certificate.gap;
  result.relative_gap = result.objective > 0.0 ? result.gap / result.objective : 0.0;
  if (result.relative_gap <= settings.tolerance) result.status = Status::converged;
  result.weights = weights_of(blocks, *certificate.parts);
  result.duals = transposed(sweeps->duals(), problem.classes);
  result.seconds = seconds_since(begin);
  return result;
}

}  // namespace taxolearn
