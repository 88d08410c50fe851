#include "taxolearn/fit/newton.hpp"

#include <algorithm>
#include <cmath>

#include "newton_steps.hpp"
#include "predictor_space.hpp"
#include "taxolearn/solver/pcg.hpp"

namespace taxolearn {
namespace {

constexpr int cg_steps = 500;  // at most, a Newton step

/// Steps by preconditioned conjugate gradients; the preconditioner is the diagonal.
template <class T>
class GradientSteps final : public NewtonSteps {
 public:
  GradientSteps(CoefficientSpace<T>& space, const Problem& problem, const Execution& execution)
      : space_(space),
        likelihood_(*problem.likelihood),
        execution_(execution),
        rows_(likelihood_.rows()),
        classes_(likelihood_.outputs()),
        prior_(space.kernel_diagonal()),
        diagonal_(rows_, classes_),
        right_(rows_, classes_),
        scratch_(rows_, classes_),
        workspace_(rows_ * classes_) {}

  void solve(const Matrix<double>& curvature, const Matrix<double>& gradient, const Matrix<double>& image, double eta,
             Matrix<double>& step) override {
    const Index size = rows_ * classes_;
    const double gradient_norm = std::sqrt(dot(gradient.data(), gradient.data(), size, execution_));
    const auto root = [&](double* x) {
      for_row_blocks(rows_, classes_, execution_, [&](Index first, Index count) {
        likelihood_.root(first, count, curvature.row(first), x + first * classes_);
      });
    };
    const auto root_transposed = [&](double* x) {
      for_row_blocks(rows_, classes_, execution_, [&](Index first, Index count) {
        likelihood_.root_transposed(first, count, curvature.row(first), x + first * classes_);
      });
    };
    for_row_blocks(rows_, classes_, execution_, [&](Index first, Index count) {
      likelihood_.root_diagonal(first, count, curvature.row(first), diagonal_.row(first));
      Array value(diagonal_.row(first), count * classes_);
      value = 1.0 + ConstArray<double>(prior_.row(first), count * classes_) * value;
    });
    right_ = image;
    root_transposed(right_.data());

    LinearSystem system;
    system.apply = [&](const double* x, double* out) {
      std::copy(x, x + size, scratch_.data());
      root(scratch_.data());
      space_.kernel(scratch_.data(), out);
      root_transposed(out);
      axpy(1.0, x, out, size, execution_);
    };
    system.precondition = [&](const double* residual, double* out) {
      Array(out, size) = ConstArray<double>(residual, size) / ConstArray<double>(diagonal_.data(), size);
    };
    system.is_accurate = [&](const double* residual, int) {
      std::copy(residual, residual + size, scratch_.data());
      root(scratch_.data());
      return std::sqrt(dot(scratch_.data(), scratch_.data(), size, execution_)) <= eta * gradient_norm;
    };
    pcg(system, right_.data(), step.data(), size, cg_steps, workspace_, execution_);
    root(step.data());
    axpy(-1.0, gradient.data(), step.data(), size, execution_);
  }

 private:
  CoefficientSpace<T>& space_;
  const Likelihood& likelihood_;
  Execution execution_;
  Index rows_, classes_;
  Matrix<double> prior_;  ///< diagonal of K
  Matrix<double> diagonal_, right_, scratch_;
  PcgWorkspace workspace_;
};

}  // namespace

template <class T>
MinimizeResult newton(CoefficientSpace<T>& space, const Problem& problem, const MinimizeSettings& settings,
                      const Report& report, const Execution& execution) {
  GradientSteps<T> steps(space, problem, execution);
  return take_newton_steps(space, problem, steps, settings, report, execution);
}

template MinimizeResult newton(CoefficientSpace<float>&, const Problem&, const MinimizeSettings&, const Report&,
                               const Execution&);
template MinimizeResult newton(CoefficientSpace<double>&, const Problem&, const MinimizeSettings&, const Report&,
                               const Execution&);

}  // namespace taxolearn
