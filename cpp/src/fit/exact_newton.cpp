#include "newton_steps.hpp"
#include "taxolearn/base/check.hpp"
#include "taxolearn/fit/newton.hpp"
#include "taxolearn/operators/linear.hpp"
#include "taxolearn/solver/exact.hpp"

namespace taxolearn {
namespace {

/// The prior covariance K_c (n x n) of every class, each distinct one stored once.
struct ClassMatrices {
  std::vector<Matrix<double>> matrices;
  std::vector<Index> of_class;

  ClassMatrices(const Problem& problem, const Execution& execution) {
    const Index n = problem.likelihood->rows();
    const Index classes = problem.likelihood->outputs();
    std::vector<double> variances(static_cast<std::size_t>(classes), 1.0);
    if (problem.prior.coupling != nullptr) problem.prior.coupling->diag(variances.data());
    std::unique_ptr<Operator<double>> linear;
    std::vector<Operator<double>*> operators;
    if (problem.prior.kernels == nullptr) {
      linear = make_linear<double>(problem.X, problem.prior.variance, LinearAlgorithm::automatic, execution);
      operators.push_back(linear.get());
    } else {
      for (const auto& each : problem.prior.kernels->certifying_operators(execution)) operators.push_back(each.get());
    }
    Matrix<double> identity(n, n);
    for (Index i = 0; i < n; ++i) identity.row(i)[i] = 1.0;
    std::vector<std::pair<Index, double>> known;
    for (Index c = 0; c < classes; ++c) {
      const Index l = problem.prior.kernel_of.empty() ? 0 : problem.prior.kernel_of[static_cast<std::size_t>(c)];
      const std::pair<Index, double> key(l, variances[static_cast<std::size_t>(c)]);
      const auto found = std::find(known.begin(), known.end(), key);
      of_class.push_back(found - known.begin());
      if (found != known.end()) continue;
      known.push_back(key);
      Matrix<double> K(n, n);
      operators[static_cast<std::size_t>(l)]->apply(identity.view(), K.view(), nullptr, execution);
      for (Index k = 0; k < K.size(); ++k) K.data()[k] = key.second * K.data()[k] + problem.prior.intercept_variance;
      matrices.push_back(std::move(K));
    }
  }

  std::vector<DenseView<const double>> views() const {
    std::vector<DenseView<const double>> out;
    for (const Matrix<double>& matrix : matrices) out.push_back(matrix.view());
    return out;
  }
};

class ExactSteps final : public NewtonSteps {
 public:
  ExactSteps(const Problem& problem, const Execution& execution)
      : likelihood_(checked(*problem.likelihood)),
        execution_(execution),
        classes_(problem, execution),
        system_(classes_.views(), classes_.of_class, likelihood_.rows()),
        diagonal_(likelihood_.rows(), likelihood_.outputs()) {}

  void solve(const Matrix<double>& curvature, const Matrix<double>& gradient, const Matrix<double>& image, double,
             Matrix<double>& step) override {
    for_row_blocks(curvature.rows(), curvature.cols(), execution_, [&](Index first, Index count) {
      likelihood_.hessian_diagonal(first, count, curvature.row(first), diagonal_.row(first));
    });
    if (likelihood_.hessian_structure() == HessianStructure::diagonal) {
      system_.factor_diagonal(diagonal_.data(), execution_);
    } else {
      system_.factor_diagonal_minus_rank_one(diagonal_.data(), execution_);
    }
    system_.solve(gradient.data(), image.data(), step.data(), execution_);
  }

 private:
  static const Likelihood& checked(const Likelihood& likelihood) {
    require(likelihood.hessian_structure() != HessianStructure::general,
            "method \"exact\" is for likelihoods whose Hessian is diagonal, or diagonal minus rank one, in each row; "
            "choose another method");
    return likelihood;
  }

  const Likelihood& likelihood_;
  Execution execution_;
  ClassMatrices classes_;
  ExactSystem system_;
  Matrix<double> diagonal_;  ///< n x C
};

}  // namespace

std::unique_ptr<NewtonSteps> exact_steps(const Problem& problem, const Execution& execution) {
  return std::make_unique<ExactSteps>(problem, execution);
}

template <class T>
MinimizeResult exact_newton(CoefficientSpace<T>& space, const Problem& problem, const MinimizeSettings& settings,
                            const Report& report, const Execution& execution) {
  ExactSteps steps(problem, execution);
  return take_newton_steps(space, problem, steps, settings, report, execution);
}

template MinimizeResult exact_newton(CoefficientSpace<float>&, const Problem&, const MinimizeSettings&, const Report&,
                                     const Execution&);
template MinimizeResult exact_newton(CoefficientSpace<double>&, const Problem&, const MinimizeSettings&, const Report&,
                                     const Execution&);

}  // namespace taxolearn
