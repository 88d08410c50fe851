#include "taxolearn/bayes/variational.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/base/product.hpp"
#include "taxolearn/base/vector.hpp"
#include "tree_gaussian.hpp"

namespace taxolearn {
namespace {

constexpr Index rows_per_block = 512;
constexpr int alternations = 5;  // of xi and beta in a round, which cost little

/// (sigmoid(xi) - 1/2) / (2 xi) of (4).
double lambda(double xi) { return xi < 1e-4 ? 0.125 - xi * xi / 96.0 : std::tanh(0.5 * xi) / (4.0 * xi); }

double log_one_plus_exp(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

double digamma(double x) {
  double sum = 0.0;
  for (; x < 10.0; x += 1.0) sum -= 1.0 / x;
  const double inverse = 1.0 / (x * x);
  return sum + std::log(x) - 0.5 / x -
         inverse * (1.0 / 12.0 - inverse * (1.0 / 120.0 - inverse * (1.0 / 252.0 - inverse * (1.0 / 240.0))));
}

void check(const VariationalProblem& problem, const VariationalSettings& settings) {
  const Index d = problem.X.cols;
  require(problem.taxonomy != nullptr, "there is no taxonomy");
  require(problem.link == Link::softmax || problem.link == Link::logistic, "the link must be softmax or logistic");
  require(problem.X.rows > 0 && d > 0, "X has shape ", shape(problem.X), ", expected at least one row and one feature");
  require(static_cast<Index>(problem.groups.size()) == problem.taxonomy->nodes(), "groups has ", problem.groups.size(),
          " elements, expected ", problem.taxonomy->nodes());
  const auto groups = static_cast<Index>(problem.shapes.size());
  for (std::size_t n = 1; n < problem.groups.size(); ++n)
    require(problem.groups[n] >= 0 && problem.groups[n] < groups, "groups has ", problem.groups[n],
            ", expected numbers from 0 to below ", groups);
  require(problem.rates.rows == 1 || problem.rates.rows == d, "rates has ", problem.rates.rows, " rows, expected 1 or ",
          d);
  require_shape("rates", problem.rates, problem.rates.rows, groups);
  require_shape("variances", problem.variances, problem.rates.rows, groups);
  require(settings.max_rounds >= 1, "max_rounds is ", settings.max_rounds, ", expected at least 1");
  require(settings.tolerance > 0.0, "tol must be positive, got ", settings.tolerance);
  for (Index i = 0; i < problem.X.rows; ++i) {
    const std::int64_t count = problem.label_offsets[i + 1] - problem.label_offsets[i];
    require(problem.link == Link::logistic || count == 1, "row ", i, " has ", count, " labels, expected one");
    for (std::int64_t k = problem.label_offsets[i]; k < problem.label_offsets[i + 1]; ++k)
      require(problem.labels[k] >= 0 && problem.labels[k] < problem.taxonomy->classes(), "row ", i, " has the label ",
              problem.labels[k], ", expected numbers from 0 to below ", problem.taxonomy->classes());
  }
}

/// Inference in progress. Arrays of rows and classes are stored class by class, so that every class reads its own.
class Inference {
 public:
  Inference(const VariationalProblem& problem, const Execution& execution)
      : problem_(problem),
        execution_(execution),
        tree_(*problem.taxonomy),
        n_(problem.X.rows),
        d_(problem.X.cols),
        classes_(tree_.classes()),
        by_feature_(problem.rates.rows > 1),
        gaussian_(tree_, d_),
        D_(tree_.nodes(), d_),
        means_(classes_, n_),
        variances_(classes_, n_),
        xi_(classes_, n_),
        beta_(static_cast<std::size_t>(n_), 0.0),
        bilinear_(classes_, d_),
        intercepts_(static_cast<std::size_t>(classes_)) {
    const auto groups = static_cast<Index>(problem.shapes.size());
    rates_ = Matrix<double>(problem.rates.rows, groups);
    const std::vector<double> shapes = posterior_shapes();
    for (Index j = 0; j < rates_.rows(); ++j) {
      for (Index g = 0; g < groups; ++g)
        rates_.row(j)[g] = problem.variances.row(j)[g] * shapes[static_cast<std::size_t>(g)];
    }
    label_sums_ = Matrix<double>(classes_, d_ + 1);
    for (Index i = 0; i < n_; ++i) {
      for (std::int64_t k = problem.label_offsets[i]; k < problem.label_offsets[i + 1]; ++k) {
        double* const to = label_sums_.row(problem.labels[k]);
        axpy_block(weight(i), problem.X.row(i), to, d_);
        to[d_] += weight(i);
      }
    }
    tighten();
  }

  /// Updates everything once; returns the bound.
  double round() {
    set_precisions();
    update_weights();
    update_precisions();
    update_predictors();
    return label_terms() - tighten() + prior_terms();
  }

  VariationalResult take() {
    VariationalResult out;
    out.weights = Matrix<double>(d_, classes_);
    out.variances = Matrix<double>(d_, classes_);
    for (Index c = 0; c < classes_; ++c) {
      const Index node = tree_.inner() + c;
      const DenseView<double> P = gaussian_.covariance(node);
      for (Index j = 0; j < d_; ++j) {
        out.weights.row(j)[c] = gaussian_.mean(node)[j];
        out.variances.row(j)[c] = P.row(j)[j];
      }
      out.intercepts.push_back(intercepts_[static_cast<std::size_t>(c)].mean);
      out.intercept_variances.push_back(intercepts_[static_cast<std::size_t>(c)].variance);
    }
    out.rates = std::move(rates_);
    return out;
  }

 private:
  /// b = mean_at_zero - bilinear . w + noise of variance given_weights.
  struct Intercept {
    double mean_at_zero = 0.0, given_weights = 0.0, mean = 0.0, variance = 0.0;
  };

  double weight(Index i) const { return problem_.row_weights == nullptr ? 1.0 : problem_.row_weights[i]; }

  std::vector<double> posterior_shapes() const {
    std::vector<double> out = problem_.shapes;
    const double each = 0.5 * (by_feature_ ? 1.0 : static_cast<double>(d_));
    for (std::size_t n = 1; n < problem_.groups.size(); ++n) out[static_cast<std::size_t>(problem_.groups[n])] += each;
    return out;
  }

  /// Means of the precisions.
  void set_precisions() {
    const std::vector<double> shapes = posterior_shapes();
    for (Index node = 1; node < tree_.nodes(); ++node) {
      const Index g = problem_.groups[static_cast<std::size_t>(node)];
      for (Index j = 0; j < d_; ++j)
        D_.row(node)[j] = shapes[static_cast<std::size_t>(g)] / rates_.row(by_feature_ ? j : 0)[g];
    }
  }

  void update_weights() {
    parallel_for(classes_, execution_, [&](Index c) { collect(c); });
    gaussian_.solve(D_.view(), execution_);
    parallel_for(classes_, execution_, [&](Index c) {
      const double* const a = bilinear_.row(c);
      const DenseView<double> P = gaussian_.covariance(tree_.inner() + c);
      Intercept& b = intercepts_[static_cast<std::size_t>(c)];
      b.mean = b.mean_at_zero - dot_block(a, gaussian_.mean(tree_.inner() + c), d_);
      b.variance = b.given_weights;
      for (Index j = 0; j < d_; ++j) b.variance += a[j] * dot_block(P.row(j), a, d_);
    });
  }

  /// What the rows say about the weights of a class (5), (6), its intercept integrated out.
  void collect(Index c) {
    const DenseView<double> A = gaussian_.leaf_precision(c);
    double* const eta = gaussian_.leaf_sum(c);
    clear(A);
    std::vector<double> row_sums(static_cast<std::size_t>(d_), 0.0);
    std::copy(label_sums_.row(c), label_sums_.row(c) + d_, eta);
    double total = 0.0, total_eta = label_sums_.row(c)[d_];
    Matrix<double> scaled(std::min(rows_per_block, n_), d_);
    const Blocks blocks(n_, rows_per_block);
    for (Index block = 0; block < blocks.number(); ++block) {
      const Index first = blocks.first(block), count = blocks.length(block);
      for (Index i = 0; i < count; ++i) {
        const double w = weight(first + i), s = 2.0 * w * lambda(xi_.row(c)[first + i]);
        const double r = s * beta_[static_cast<std::size_t>(first + i)] - 0.5 * w;
        const double* const x = problem_.X.row(first + i);
        double* const to = scaled.row(i);
#pragma omp simd
        for (Index j = 0; j < d_; ++j) to[j] = s * x[j];
        axpy_block(1.0, to, row_sums.data(), d_);
        axpy_block(r, x, eta, d_);
        total += s;
        total_eta += r;
      }
      add_product(Product::AtB, row_block(problem_.X, first, count), row_block(scaled.view(), 0, count), A);
      if (interrupted(execution_)) return;
    }
    Intercept& b = intercepts_[static_cast<std::size_t>(c)];
    double* const a = bilinear_.row(c);
    std::fill(a, a + d_, 0.0);
    b = Intercept{};
    if (problem_.intercept_variance == 0.0) return;
    b.given_weights = 1.0 / (total + 1.0 / problem_.intercept_variance);
    b.mean_at_zero = b.given_weights * total_eta;
    for (Index j = 0; j < d_; ++j) a[j] = b.given_weights * row_sums[static_cast<std::size_t>(j)];
    for (Index j = 0; j < d_; ++j) axpy_block(-row_sums[static_cast<std::size_t>(j)], a, A.row(j), d_);
    axpy_block(-total_eta, a, eta, d_);
  }

  /// Rates of the Gamma posteriors: half the expected squares are added to b.
  void update_precisions() {
    copy(problem_.rates, rates_.view());
    for (Index node = 1; node < tree_.nodes(); ++node) {
      const Index g = problem_.groups[static_cast<std::size_t>(node)];
      for (Index j = 0; j < d_; ++j)
        rates_.row(by_feature_ ? j : 0)[g] += 0.5 * (gaussian_.squares(node)[j] + gaussian_.spreads(node)[j]);
    }
  }

  /// Means and variances of all predictors: of (x - a) . w + the rest of the intercept.
  void update_predictors() {
    parallel_for(classes_, execution_, [&](Index c) {
      const Index node = tree_.inner() + c;
      const Intercept& b = intercepts_[static_cast<std::size_t>(c)];
      const DenseView<double> P = gaussian_.covariance(node);
      const double* const a = bilinear_.row(c);
      Matrix<double> image(std::min(rows_per_block, n_), d_);
      std::vector<double> shift(static_cast<std::size_t>(d_));
      for (Index j = 0; j < d_; ++j) shift[static_cast<std::size_t>(j)] = dot_block(P.row(j), a, d_);
      const Blocks blocks(n_, rows_per_block);
      for (Index block = 0; block < blocks.number(); ++block) {
        const Index first = blocks.first(block), count = blocks.length(block);
        set_product(Product::AB, row_block(problem_.X, first, count), P, row_block(image.view(), 0, count));
        for (Index i = 0; i < count; ++i) {
          const double *const x = problem_.X.row(first + i), *const own = image.row(i);
          double square = 0.0;
#pragma omp simd reduction(+ : square)
          for (Index j = 0; j < d_; ++j) square += (x[j] - a[j]) * (own[j] - shift[static_cast<std::size_t>(j)]);
          means_.row(c)[first + i] = b.mean + dot_block(x, gaussian_.mean(node), d_);
          variances_.row(c)[first + i] = b.given_weights + std::max(square, 0.0);
        }
        if (interrupted(execution_)) return;
      }
    });
  }

  /// Chooses xi and beta so that the upper bound of the log normalizers is lowest; returns its weighted sum.
  double tighten() {
    return parallel_sum<double>(Blocks(n_, rows_per_block), execution_, [&](Index first, Index count) {
      double sum = 0.0;
      for (Index i = first; i < first + count; ++i) sum += weight(i) * tighten_row(i);
      return sum;
    });
  }

  double tighten_row(Index i) {
    double& beta = beta_[static_cast<std::size_t>(i)];
    const auto xi_at = [&](Index c) {
      const double distance = means_.row(c)[i] - beta;
      return std::sqrt(variances_.row(c)[i] + distance * distance);
    };
    if (problem_.link == Link::softmax) {
      for (int k = 0; k < alternations; ++k) {
        double below = 0.0, above = 0.25 * static_cast<double>(classes_) - 0.5;
        for (Index c = 0; c < classes_; ++c) {
          const double l = lambda(xi_at(c));
          below += l;
          above += l * means_.row(c)[i];
        }
        beta = above / below;
      }
    }
    double sum = beta;
    for (Index c = 0; c < classes_; ++c) {
      const double xi = xi_at(c);  // where the quadratic part of (4) vanishes
      xi_.row(c)[i] = xi;
      sum += 0.5 * (means_.row(c)[i] - beta - xi) + log_one_plus_exp(xi);
    }
    return sum;
  }

  /// The expected predictors of the labels.
  double label_terms() const {
    double sum = 0.0;
    for (Index c = 0; c < classes_; ++c) {
      sum += dot_block(label_sums_.row(c), gaussian_.mean(tree_.inner() + c), d_) +
             label_sums_.row(c)[d_] * intercepts_[static_cast<std::size_t>(c)].mean;
    }
    return sum;
  }

  /// Expected log priors of weights, intercepts and precisions, and the entropies of their posteriors.
  double prior_terms() const {
    const std::vector<double> shapes = posterior_shapes();
    double sum = 0.5 * (gaussian_.log_determinant() + static_cast<double>((tree_.nodes() - 1) * d_));
    for (Index j = 0; j < rates_.rows(); ++j) {
      for (std::size_t g = 0; g < shapes.size(); ++g) {
        const auto column = static_cast<Index>(g);
        const double a = problem_.shapes[g], b = problem_.rates.row(j)[column], nu = rates_.row(j)[column];
        const double tau = shapes[g], mean = tau / nu, mean_log = digamma(tau) - std::log(nu);
        // Weights: tau - a halves of (E log alpha - E alpha E squares), with nu - b half these squares.
        sum += (tau - a) * mean_log - mean * (nu - b);
        sum += a * std::log(b) - std::lgamma(a) + (a - 1.0) * mean_log - b * mean;
        sum += tau - std::log(nu) + std::lgamma(tau) + (1.0 - tau) * digamma(tau);
      }
    }
    if (problem_.intercept_variance == 0.0) return sum;
    for (const Intercept& b : intercepts_) {
      const double square = (b.mean * b.mean + b.variance) / problem_.intercept_variance;
      sum += 0.5 * (1.0 - square + std::log(b.given_weights / problem_.intercept_variance));
    }
    return sum;
  }

  const VariationalProblem& problem_;
  const Execution& execution_;
  const Taxonomy& tree_;
  Index n_, d_, classes_;
  bool by_feature_;
  TreeGaussian gaussian_;
  Matrix<double> D_;      // means of precisions, nodes x d
  Matrix<double> rates_;  // of the Gamma posteriors
  Matrix<double> means_, variances_, xi_;
  std::vector<double> beta_;
  Matrix<double> bilinear_;    // a of the intercepts, C x d
  Matrix<double> label_sums_;  // sum of w (x, 1) over the rows of a class
  std::vector<Intercept> intercepts_;
};

}  // namespace

VariationalResult fit_variational(const VariationalProblem& problem, const VariationalSettings& settings,
                                  const Execution& execution) {
  check(problem, settings);
  const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  Inference inference(problem, execution);
  std::vector<double> bounds;
  bool converged = false;
  while (!converged && static_cast<int>(bounds.size()) < settings.max_rounds) {
    bounds.push_back(inference.round());
    const double rise = bounds.size() > 1 ? bounds.back() - bounds[bounds.size() - 2] : HUGE_VAL;
    converged = rise < settings.tolerance * std::abs(bounds.back());
    if (execution.monitor != nullptr) {
      Progress progress;
      progress.iteration = static_cast<int>(bounds.size());
      progress.products = progress.iteration;
      progress.objective = -bounds.back();
      progress.relative_gap = rise / std::abs(bounds.back());
      progress.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      execution.monitor->progress(progress);
      if (execution.monitor->stopped()) throw Interrupted();
    }
  }
  VariationalResult out = inference.take();
  out.converged = converged;
  out.bounds = std::move(bounds);
  return out;
}

}  // namespace taxolearn
