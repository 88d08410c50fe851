#include <doctest/doctest.h>

#include <map>
#include <memory>

#include "problems.hpp"
#include "taxolearn/solver/lbfgs.hpp"
#include "taxolearn/solver/line_search.hpp"
#include "taxolearn/solver/minimize.hpp"
#include "taxolearn/solver/nonlinear_cg.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

/// A convex function of one number, with its first two derivatives.
using Loss = LineValue (*)(double);

LineValue squared(double u) { return {0.5 * (u - 1.0) * (u - 1.0), u - 1.0, 1.0}; }

LineValue softplus(double u) {
  const double p = 1.0 / (1.0 + std::exp(-u));
  return {std::max(u, 0.0) + std::log1p(std::exp(-std::abs(u))), p, p * (1.0 - p)};
}

/// Phi(x) = sum_i loss((A x)_i) + 1/2 |x|^2 on plain vectors.
class PlainSpace : public SearchSpace {
 public:
  PlainSpace(MatrixXd A, Loss loss, int slots)
      : A_(std::move(A)), loss_(loss), x(VectorXd::Zero(A_.cols())), slots_(slots, VectorXd::Zero(A_.cols())) {}

  double objective() const { return value(A_ * x, VectorXd::Zero(A_.rows())).value + 0.5 * x.squaredNorm(); }

  VectorXd exact_gradient() const {
    const VectorXd slopes = (A_ * x).unaryExpr([this](double u) { return loss_(u).slope; });
    return x + A_.transpose() * slopes;
  }

  double advance(double step, int slot) override {
    ++gradients;
    if (step != 0.0) x += step * direction;
    slots_.at(static_cast<std::size_t>(slot)) = exact_gradient();
    return objective();
  }
  std::vector<double> inner(int slot, const std::vector<int>& others) override {
    std::vector<double> out;
    for (const int k : others) {
      out.push_back(slots_.at(static_cast<std::size_t>(slot)).dot(slots_.at(static_cast<std::size_t>(k))));
    }
    return out;
  }
  void combine(const std::vector<double>& coefficients, int into) override {
    REQUIRE(coefficients.size() == slots_.size());
    direction = VectorXd::Zero(x.size());
    for (std::size_t k = 0; k < slots_.size(); ++k) direction += coefficients[k] * slots_[k];
    slots_.at(static_cast<std::size_t>(into)) = direction;
  }
  LineValue line(double step) override {
    ++lines;
    const VectorXd moved = x + step * direction;
    LineValue out = value(A_ * moved, A_ * direction);
    out.value += 0.5 * moved.squaredNorm();
    out.slope += moved.dot(direction);
    out.curvature += direction.squaredNorm();
    return out;
  }

  /// By Newton's method with the dense Hessian.
  double minimum() const {
    PlainSpace copy(*this);
    for (int k = 0; k < 50; ++k) {
      const VectorXd curvatures = (A_ * copy.x).unaryExpr([this](double u) { return loss_(u).curvature; });
      const MatrixXd H = MatrixXd::Identity(x.size(), x.size()) + A_.transpose() * curvatures.asDiagonal() * A_;
      copy.direction = -solution(H, copy.exact_gradient());
      double step = 1.0;
      while (step > 1e-8 && copy.line(step).value > copy.line(0.0).value) step *= 0.5;
      copy.x += step * copy.direction;
    }
    return copy.objective();
  }

 private:
  LineValue value(const VectorXd& u, const VectorXd& du) const {
    LineValue out;
    for (Index i = 0; i < u.size(); ++i) {
      const LineValue part = loss_(u(i));
      out.value += part.value;
      out.slope += part.slope * du(i);
      out.curvature += part.curvature * du(i) * du(i);
    }
    return out;
  }

  MatrixXd A_;
  Loss loss_;

 public:
  VectorXd x;
  VectorXd direction;
  int gradients = 0;
  int lines = 0;

 protected:
  std::vector<VectorXd> slots_;
};

/// The same in single precision: the gradient has a limit below which it does not fall.
struct RoundedSpace : PlainSpace {
  using PlainSpace::PlainSpace;
  double advance(double step, int slot) override {
    if (step != 0.0) x += step * direction;
    x = x.cast<float>().cast<double>();
    return PlainSpace::advance(0.0, slot);
  }
};

using Minimizer = MinimizeResult (*)(SearchSpace&, const MinimizeSettings&, const Report&);
struct Solver {
  const char* name;
  Minimizer minimize;
  int history;
  int slots() const { return minimize == nonlinear_cg ? nonlinear_cg_slots : lbfgs_slots(history); }
};
const std::vector<Solver> solvers{
    {"lbfgs 1", lbfgs, 1}, {"lbfgs 5", lbfgs, 5}, {"lbfgs 20", lbfgs, 20}, {"nonlinear_cg", nonlinear_cg, 5}};

void ignore(const MinimizeResult&) {}

MatrixXd random_design(Index rows, Index cols) {
  MatrixXd A = Random(1).matrix(rows, cols);
  for (Index j = 0; j < cols; ++j) A.col(j) *= std::pow(10.0, static_cast<double>(j) / static_cast<double>(cols));
  return A;
}

}  // namespace

TEST_CASE("minimizers reach the minimum, and the gap bounds the distance at every iterate") {
  for (const Solver& solver : solvers) {
    for (const Loss loss : {squared, softplus}) {
      for (const Index size : {1, 12}) {
        CAPTURE(solver.name);
        CAPTURE(size);
        PlainSpace space(random_design(40, size), loss, solver.slots());
        const double minimum = space.minimum();
        MinimizeSettings settings;
        settings.tolerance = 1e-13;
        settings.history = solver.history;
        int reports = 0;
        double before = space.objective();
        const auto report = [&](const MinimizeResult& state) {
          ++reports;
          CHECK(state.iterations == reports);
          CHECK(state.objective == doctest::Approx(space.objective()).epsilon(1e-14));
          CHECK(state.objective <= before + 1e-12);
          CHECK(state.gap >= state.objective - minimum - 1e-12);
          CHECK(state.gap == doctest::Approx(0.5 * space.exact_gradient().squaredNorm()).epsilon(1e-6));
          before = state.objective;
        };
        const MinimizeResult result = solver.minimize(space, settings, report);
        CHECK(result.status == Status::converged);
        CHECK(result.gap <= 1e-13 * result.objective);
        CHECK(result.objective - minimum < 1e-12);
        CHECK(result.iterations == reports);
        CHECK(result.iterations < 80);
        CHECK(space.gradients == result.iterations + 1);  // one product an iteration
      }
    }
  }
}

TEST_CASE("L-BFGS on slots takes the steps of the two-loop recursion on vectors") {
  for (const std::size_t history : {2, 5}) {
    for (const Loss loss : {squared, softplus}) {
      PlainSpace space(random_design(40, 12), loss, lbfgs_slots(static_cast<int>(history)));
      PlainSpace plain(random_design(40, 12), loss, 1);
      MinimizeSettings settings;
      settings.history = static_cast<int>(history);
      settings.max_iterations = 12;
      settings.tolerance = 1e-15;
      std::vector<VectorXd> s, y;
      const auto compare = [&](const MinimizeResult&) {
        const VectorXd gradient = plain.exact_gradient();
        VectorXd q = -gradient;
        std::vector<double> a(s.size());
        for (std::size_t k = s.size(); k-- > 0;) {
          a[k] = s[k].dot(q) / s[k].dot(y[k]);
          q -= a[k] * y[k];
        }
        if (!s.empty()) q *= s.back().dot(y.back()) / y.back().squaredNorm();
        for (std::size_t k = 0; k < s.size(); ++k) q += (a[k] - y[k].dot(q) / s[k].dot(y[k])) * s[k];
        plain.direction = q;
        const double slope = q.dot(gradient);
        const double step = line_search(plain, slope, s.empty() ? -slope / plain.line(0.0).curvature : 1.0);
        plain.x += step * q;
        s.push_back(step * q);
        y.push_back(plain.exact_gradient() - gradient);
        if (s.size() > history) {
          s.erase(s.begin());
          y.erase(y.begin());
        }
        CHECK(relative_error(space.x, plain.x) < 1e-8);
      };
      CHECK(lbfgs(space, settings, compare).iterations == 12);
    }
  }
}

TEST_CASE("conjugate gradients on a quadratic take no more iterations than there are dimensions") {
  const auto A = random_design(40, 4);
  for (const bool known : {false, true}) {
    PlainSpace space(A, squared, nonlinear_cg_slots);
    MinimizeSettings settings;
    settings.tolerance = 1e-10;
    settings.quadratic = known;
    const MinimizeResult result = nonlinear_cg(space, settings, ignore);
    CHECK(result.status == Status::converged);
    CHECK(result.iterations <= 4);
    CHECK(space.lines == (known ? 1 : 2) * result.iterations);
  }
}

TEST_CASE("minimizers stop after the iterations allowed") {
  for (const Solver& solver : solvers) {
    for (const int iterations : {0, 1, 4}) {
      CAPTURE(solver.name);
      PlainSpace space(random_design(40, 12), softplus, solver.slots());
      MinimizeSettings settings;
      settings.history = solver.history;
      settings.max_iterations = iterations;
      settings.tolerance = 1e-12;
      const MinimizeResult result = solver.minimize(space, settings, ignore);
      CHECK(result.status == Status::max_iter);
      CHECK(result.iterations == iterations);
      CHECK(result.objective == doctest::Approx(space.objective()).epsilon(1e-14));
    }
  }
}

TEST_CASE("minimizers say that the arithmetic has come to its limit") {
  for (const Solver& solver : solvers) {
    CAPTURE(solver.name);
    RoundedSpace space(random_design(40, 12), softplus, solver.slots());
    const double minimum = space.minimum();
    MinimizeSettings settings;
    settings.history = solver.history;
    settings.tolerance = 1e-18;
    const MinimizeResult result = solver.minimize(space, settings, ignore);
    CHECK(result.status == Status::stalled);
    CHECK(result.iterations < 500);
    CHECK(result.objective - minimum < 1e-6);
  }
}

TEST_CASE("nothing to do at the minimum") {
  for (const Solver& solver : solvers) {
    PlainSpace space(MatrixXd::Zero(3, 2), squared, solver.slots());
    MinimizeSettings settings;
    settings.history = solver.history;
    const MinimizeResult result = solver.minimize(space, settings, ignore);
    CHECK(result.status == Status::converged);
    CHECK(result.iterations == 0);
    CHECK(result.gap == 0.0);
    CHECK(result.objective == 1.5);
  }
}

TEST_CASE("the line search leaves at most a fifth of the slope, even from a bad first step") {
  for (const Loss loss : {squared, softplus}) {
    for (const double scale : {1e-3, 1.0, 1e3}) {
      PlainSpace space(scale * random_design(40, 6), loss, 1);
      space.advance(0.0, 0);
      space.combine({-1.0}, 0);
      const LineValue zero = space.line(0.0);
      for (const double factor : {1e-6, 0.01, 1.0, 100.0, 1e6}) {
        CAPTURE(scale);
        CAPTURE(factor);
        const double start = -factor * zero.slope / zero.curvature;
        space.lines = 0;
        const double step = line_search(space, zero.slope, start);
        CHECK(space.lines <= 30);
        CHECK(step > 0.0);
        CHECK(std::abs(space.line(step).slope) <= 0.2 * std::abs(zero.slope));
        CHECK(space.line(step).value < zero.value);
      }
    }
  }
}

TEST_CASE("the line search does not step uphill, and comes back from where the function is not finite") {
  struct Overflowing : PlainSpace {
    using PlainSpace::PlainSpace;
    double limit = 0.0;
    LineValue line(double step) override {
      LineValue out = PlainSpace::line(step);
      if (step > limit) out.value = out.slope = std::numeric_limits<double>::infinity();
      return out;
    }
  };
  Overflowing space(random_design(40, 6), squared, 1);
  space.advance(0.0, 0);
  space.combine({-1.0}, 0);
  const double slope = -space.direction.squaredNorm();
  CHECK(line_search(space, 0.0, 1.0) == 0.0);
  CHECK(line_search(space, 1.0, 1.0) == 0.0);
  CHECK(line_search(space, std::nan(""), 1.0) == 0.0);
  CHECK(line_search(space, slope, 1.0) == 0.0);  // no step is allowed
  space.limit = 0.9;
  const double step = line_search(space, slope, 64.0);
  CHECK(step > 0.0);
  CHECK(step <= 0.9);
  CHECK(std::abs(space.line(step).slope) <= 0.2 * std::abs(slope));
}

TEST_CASE("convergence is decided by tolerance, patience and iterations, in this order") {
  MinimizeSettings settings;
  settings.tolerance = 0.1;
  settings.patience = 3;
  settings.max_iterations = 10;
  MinimizeResult result;
  result.objective = -2.0;
  {
    Convergence convergence(settings);
    result.gap = 0.3;
    CHECK_FALSE(convergence.done(result));
    result.gap = 0.2;
    CHECK(convergence.done(result));
    CHECK(result.status == Status::converged);
  }
  {
    Convergence convergence(settings);
    for (const double gap : {5.0, 6.0, 5.0, 4.0, 4.5, 4.0}) {  // two without a new best, then two again
      result.gap = gap;
      CHECK_FALSE(convergence.done(result));
    }
    result.gap = 7.0;
    CHECK(convergence.done(result));
    CHECK(result.status == Status::stalled);
  }
  {
    Convergence convergence(settings);
    result.gap = 1.0;
    result.iterations = 9;
    CHECK_FALSE(convergence.done(result));
    result.iterations = 10;
    CHECK(convergence.done(result));
    CHECK(result.status == Status::max_iter);
  }
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    Convergence convergence(settings);
    result.gap = bad;
    CHECK(convergence.done(result));
    CHECK(result.status == Status::stalled);
  }
}

TEST_CASE("objectives below the least one count as that in the relative gap") {
  MinimizeSettings settings;
  settings.tolerance = 0.1;
  const auto is_done = [&](double objective, double gap) {
    Convergence convergence(settings);
    MinimizeResult result;
    result.objective = objective;
    result.gap = gap;
    const bool done = convergence.done(result);
    if (done) CHECK(result.status == Status::converged);
    return done;
  };
  CHECK_FALSE(is_done(1e-20, 1e-18));
  settings.least_objective = 1e-12;
  CHECK(is_done(1e-20, 1e-18));
  CHECK(is_done(-1e-20, 0.9e-13));
  CHECK_FALSE(is_done(1e-20, 1.1e-13));
  CHECK(is_done(0.0, 1e-18));
  CHECK(is_done(-2.0, 0.2));  // larger ones count as they are, whatever their sign
  CHECK_FALSE(is_done(-2.0, 0.21));
}

TEST_CASE("L-BFGS keeps more pairs of smaller vectors, within bounds") {
  const std::map<double, int> pairs{{100.0, 2}, {1.0, 2}, {0.5, 4}, {0.25, 8}, {0.05, 20}, {0.0, 20}};
  for (const auto& [relative_size, expected] : pairs) CHECK(lbfgs_history(relative_size) == expected);
}
