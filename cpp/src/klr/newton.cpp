#include "taxolearn/klr/newton.hpp"

#include <algorithm>
#include <cmath>

#include "predictor_space.hpp"
#include "taxolearn/solver/pcg.hpp"

namespace taxolearn {
namespace {

constexpr int gradient_slot = 0;
constexpr int direction_slot = 1;  // also the scratch of CoefficientSpace::kernel, free while the system is solved
constexpr int cg_steps = 500;      // at most, a Newton step
constexpr double eta_first = 0.1;
constexpr double eta_least = 1e-4;

}  // namespace

template <class T>
MinimizeResult newton(CoefficientSpace<T>& space, const Problem& problem, const MinimizeSettings& settings,
                      const Report& report, const Execution& execution) {
  const Likelihood& likelihood = *problem.likelihood;
  const Index rows = likelihood.rows();
  const Index classes = likelihood.classes();
  const Index size = rows * classes;
  Matrix<double> state(rows, classes), diagonal(rows, classes), right(rows, classes), q(rows, classes);
  Matrix<double> scratch(rows, classes), image(rows, classes);
  PcgWorkspace workspace(size);
  const std::vector<double> kernel_diagonal = space.kernel_diagonal();
  std::vector<double> class_diagonal(static_cast<std::size_t>(classes), 1.0);
  if (problem.coupling != nullptr) problem.coupling->diag(class_diagonal.data());

  const auto root = [&](double* x) {
    for_row_blocks(rows, classes, execution, [&](Index first, Index count) {
      likelihood.root(first, count, state.row(first), x + first * classes);
    });
  };
  const auto root_transposed = [&](double* x) {
    for_row_blocks(rows, classes, execution, [&](Index first, Index count) {
      likelihood.root_transposed(first, count, state.row(first), x + first * classes);
    });
  };

  Convergence convergence(settings);
  MinimizeResult result;
  const auto evaluate = [&](double step) {
    result.objective = space.advance(step, gradient_slot);
    result.gap = 0.5 * space.inner(gradient_slot, {gradient_slot})[0];
  };
  evaluate(0.0);
  double eta = eta_first;
  double gap_before = result.gap;
  while (!convergence.done(result)) {
    const Buffer<T>& gradient = space.slot(gradient_slot);
    const double gradient_norm = std::sqrt(dot(gradient.data(), gradient.data(), size, execution));
    state = space.predictors();
    for_row_blocks(rows, classes, execution, [&](Index first, Index count) {
      likelihood.curve(first, count, state.row(first));
      likelihood.root_diagonal(first, count, state.row(first), diagonal.row(first));
      for (Index k = 0; k < count; ++k) {
        for (Index c = 0; c < classes; ++c) {
          double& value = diagonal.row(first + k)[c];
          const double prior =
              kernel_diagonal[static_cast<std::size_t>(first + k)] * class_diagonal[static_cast<std::size_t>(c)] +
              problem.sigma2;
          value = 1.0 + prior * value;
        }
      }
    });
    std::copy(space.slot_image(gradient_slot).begin(), space.slot_image(gradient_slot).end(), right.data());
    root_transposed(right.data());

    LinearSystem system;
    system.apply = [&](const double* x, double* out) {
      std::copy(x, x + size, scratch.data());
      root(scratch.data());
      space.kernel(scratch.data(), out);
      root_transposed(out);
      axpy(1.0, x, out, size, execution);
    };
    system.precondition = [&](const double* residual, double* out) {
      Array(out, size) = ConstArray<double>(residual, size) / ConstArray<double>(diagonal.data(), size);
    };
    system.good_enough = [&](const double* residual, int) {
      std::copy(residual, residual + size, scratch.data());
      root(scratch.data());
      return std::sqrt(dot(scratch.data(), scratch.data(), size, execution)) <= eta * gradient_norm;
    };
    pcg(system, right.data(), q.data(), size, cg_steps, workspace, execution);

    root(q.data());
    space.kernel(q.data(), image.data());
    const auto minus_gradient = [](double value, T g) { return static_cast<T>(value - static_cast<double>(g)); };
    std::transform(q.data(), q.data() + size, gradient.begin(), space.slot(direction_slot).begin(), minus_gradient);
    std::transform(image.data(), image.data() + size, space.slot_image(gradient_slot).begin(),
                   space.slot_image(direction_slot).begin(), minus_gradient);
    space.use_direction(direction_slot);
    const double slope = space.inner(gradient_slot, {direction_slot})[0];
    const double step = line_search(space, slope, 1.0);
    if (step == 0.0) {
      result.status = Status::stalled;
      return result;
    }
    ++result.iterations;
    evaluate(step);
    // Eisenstat and Walker's second choice of the forcing term, with squared norms for gaps.
    eta = std::clamp(0.9 * result.gap / gap_before, eta_least, eta_first);
    gap_before = result.gap;
    report(result);
  }
  return result;
}

template MinimizeResult newton(CoefficientSpace<float>&, const Problem&, const MinimizeSettings&, const Report&,
                               const Execution&);
template MinimizeResult newton(CoefficientSpace<double>&, const Problem&, const MinimizeSettings&, const Report&,
                               const Execution&);

}  // namespace taxolearn
