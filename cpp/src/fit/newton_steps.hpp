// What Newton's method is whatever solves its linear systems.
#pragma once

#include <algorithm>
#include <cmath>

#include "predictor_space.hpp"
#include "taxolearn/fit/newton.hpp"
#include "taxolearn/solver/line_search.hpp"
#include "taxolearn/solver/minimize.hpp"

namespace taxolearn {

template <class T>
MinimizeResult take_newton_steps(CoefficientSpace<T>& space, const Problem& problem, NewtonSteps& steps,
                                 const MinimizeSettings& settings, const Report& report, const Execution& execution) {
  constexpr int gradient_slot = 0;
  constexpr int direction_slot = 1;  // also the scratch of CoefficientSpace::kernel, free while the system is solved
  constexpr double eta_first = 0.1;
  constexpr double eta_least = 1e-4;
  const Likelihood& likelihood = *problem.likelihood;
  const Index rows = likelihood.rows();
  const Index classes = likelihood.outputs();
  const Index size = rows * classes;
  Matrix<double> curvature, gradient(rows, classes), image(rows, classes), step_vector(rows, classes);

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
    curvature = space.predictors();
    for_row_blocks(rows, classes, execution,
                   [&](Index first, Index count) { likelihood.curvature(first, count, curvature.row(first)); });
    convert(space.slot(gradient_slot).data(), gradient.data(), size, execution);
    convert(space.slot_image(gradient_slot).data(), image.data(), size, execution);
    steps.solve(curvature, gradient, image, eta, step_vector);
    // kernel() leaves the step and its image, rounded, in the last slot: the direction.
    space.kernel(step_vector.data(), image.data());
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

}  // namespace taxolearn
