#include "taxolearn/embedding/fit.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "gaussian.hpp"
#include "label_matrix.hpp"
#include "normal_equations.hpp"
#include "ridge_path.hpp"
#include "taxolearn/base/check.hpp"
#include "taxolearn/base/eigenvectors.hpp"
#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/base/product.hpp"
#include "taxolearn/base/stopwatch.hpp"

namespace taxolearn {
namespace {

constexpr Index widest = 64;  // columns at work at a time
constexpr Index rows_per_block = 512;
constexpr Index most_parts = 32;

/// Panels of equal width: a narrow one would need as many products as a wide one, or more.
Index panel_of(Index columns) {
  const Index panels = (columns + widest - 1) / widest;
  return panels == 0 ? widest : (columns + panels - 1) / panels;
}

void check(const EmbeddingProblem& problem, const EmbeddingSettings& settings) {
  const Index n = input_rows(problem.X);
  require(n >= 1 && input_features(problem.X) >= 1, "X has shape (", n, ", ", input_features(problem.X),
          "), expected at least one row and one feature");
  require(problem.classes >= 1, "n_classes is ", problem.classes, ", expected at least 1");
  require(settings.components >= 1, "n_components is ", settings.components, ", expected at least 1");
  require(settings.oversampling >= 0, "oversampling is ", settings.oversampling, ", expected at least 0");
  require(settings.rounds >= 0, "rounds is ", settings.rounds, ", expected at least 0");
  require(!std::isnan(settings.ridge) && std::isfinite(settings.ridge), "ridge is ", settings.ridge,
          ", expected a finite number");
  require(settings.tolerance > 0.0 && settings.tolerance < 1.0, "tol is ", settings.tolerance,
          ", expected a number between 0 and 1");
  require(settings.max_iterations >= 1, "max_iter is ", settings.max_iterations, ", expected at least 1");
  double total = 0.0;
  for (Index i = 0; problem.row_weights != nullptr && i < n; ++i) {
    require(std::isfinite(problem.row_weights[i]) && problem.row_weights[i] >= 0.0, "sample_weight has ",
            problem.row_weights[i], " in row ", i, ", expected finite numbers that are not negative");
    total += problem.row_weights[i];
  }
  require(problem.row_weights == nullptr || total > 0.0, "sample_weight is zero for all rows, expected a positive sum");
}

/// One fit: its products, and the panels they need.
template <class T>
class Fit {
 public:
  Fit(const EmbeddingProblem& problem, const EmbeddingSettings& settings, EmbeddingResult& result,
      const Execution& execution)
      : settings_(settings),
        result_(result),
        execution_(execution),
        Y_(problem),
        normal_(problem.X, weights_of(problem), problem.center, execution) {
    Y_.set_weights(normal_.weights());
    result_.converged = true;
  }

  void run(const EmbeddingProblem& problem) {
    const bool pca = settings_.method == EmbeddingMethod::pca;
    if (!pca) choose_ridge();
    Matrix<T> V = eigenvectors();
    const Index k = V.cols();
    Matrix<double> weights(normal_.features(), k);
    if (pca) {
      copy(std::as_const(V).view(), weights.view());
    } else {
      regress(V, weights);
    }
    result_.intercepts = intercepts(V, weights, pca);
    result_.components = Matrix<double>(V.rows(), k);
    copy(std::as_const(V).view(), result_.components.view());
    result_.weights = std::move(weights);
    take_moments(problem);
  }

 private:
  static std::vector<double> weights_of(const EmbeddingProblem& problem) {
    const auto n = static_cast<std::size_t>(input_rows(problem.X));
    if (problem.row_weights == nullptr) return std::vector<double>(n, 1.0);
    return {problem.row_weights, problem.row_weights + n};
  }

  double ridge() const { return result_.ridge * normal_.unit(); }

  void choose_ridge() {
    result_.ridge = settings_.ridge;
    if (settings_.ridge >= 0.0) return;
    RidgePath path = ridge_path(normal_, Y_, settings_.seed + 1, execution_);
    result_.ridge = path.best;
    result_.path_ridges = std::move(path.ridges);
    result_.path_errors = std::move(path.errors);
  }

  /// E = (Y - mean) Q, and out = B Q; E is weighted after that.
  Matrix<T> right_side(DenseView<const T> Q) {
    rows_ = Matrix<T>::uninitialised(Y_.rows(), Q.cols);
    Y_.expand(Q, rows_.view(), execution_);
    Matrix<T> out = Matrix<T>::uninitialised(normal_.features(), Q.cols);
    normal_.project(rows_.view(), out.view(), execution_);
    return out;
  }

  /// H^-1 B; B becomes the residual.
  Matrix<T> solve(Matrix<T>& B) {
    BlockSystem<T> system = normal_.system(ridge(), execution_);
    const int before = result_.iterations;
    if (execution_.monitor != nullptr) {
      system.report = [&](int iterations, double residual) {
        execution_.monitor->progress({before + iterations, before + iterations, 0.0, residual, result_.seconds});
        if (execution_.monitor->stopped()) throw Interrupted();
      };
    }
    Matrix<T> out = Matrix<T>::uninitialised(B.rows(), B.cols());
    const BlockCgResult solved =
        block_cg(system, B.view(), out.view(), settings_.tolerance, settings_.max_iterations, execution_);
    result_.iterations += solved.iterations;
    result_.converged = result_.converged && solved.converged;
    return out;
  }

  /// out = S Q for some columns.
  void multiply(DenseView<const T> Q, DenseView<T> out) {
    if (settings_.method == EmbeddingMethod::pca) {
      normal_.apply(Q, 0.0, out, execution_);
      return;
    }
    if (settings_.method == EmbeddingMethod::rembrandt) {
      Matrix<T> B = right_side(Q);
      const Matrix<T> Z = solve(B);
      normal_.expand(Z.view(), rows_.view(), execution_);
    } else {
      rows_ = Matrix<T>::uninitialised(Y_.rows(), Q.cols);
      Y_.expand(Q, rows_.view(), execution_);
    }
    for (Index i = 0; i < rows_.rows(); ++i) {
      const auto w = static_cast<T>(normal_.weights()[static_cast<std::size_t>(i)]);
      for (Index c = 0; c < rows_.cols(); ++c) rows_.row(i)[c] *= w;
    }
    Y_.project(std::as_const(rows_).view(), out, execution_);
  }

  Matrix<T> multiply_panels(const Matrix<T>& Q) {
    Matrix<T> out = Matrix<T>::uninitialised(Q.rows(), Q.cols());
    const Index panel = panel_of(Q.cols());
    for (Index first = 0; first < Q.cols(); first += panel) {
      const Index count = std::min(panel, Q.cols() - first);
      Matrix<T> from = Matrix<T>::uninitialised(Q.rows(), count), to = Matrix<T>::uninitialised(Q.rows(), count);
      copy(block(Q.view(), 0, Q.rows(), first, count), from.view());
      multiply(std::as_const(from).view(), to.view());
      copy(std::as_const(to).view(), block(out.view(), 0, Q.rows(), first, count));
    }
    return out;
  }

  Matrix<T> without_directions(Matrix<T> arbitrary) {
    result_.values.push_back(0.0);
    return arbitrary;
  }

  /// V, and the eigenvalues that go with it.
  Matrix<T> eigenvectors() {
    const Index size = settings_.method == EmbeddingMethod::pca ? normal_.features() : Y_.classes();
    const Index k = std::min(settings_.components, size);
    const bool random = settings_.method == EmbeddingMethod::random;
    const Index columns = random ? k : std::min(k + settings_.oversampling, size);
    Matrix<T> Q = orthonormal<T>(std::as_const(start_ = gaussian<T>(size, columns, settings_.seed)).view(), execution_);
    start_ = Matrix<T>();
    if (random) return Q;
    Matrix<T> arbitrary = Matrix<T>::uninitialised(size, 1);  // where no direction is better than another
    copy(block(Q.view(), 0, size, 0, 1), arbitrary.view());
    for (int round = 0; round < settings_.rounds; ++round) {
      const Matrix<T> product = multiply_panels(Q);
      Q = orthonormal<T>(product.view(), execution_);
      if (Q.cols() == 0) break;
    }
    if (Q.cols() == 0) return without_directions(std::move(arbitrary));
    const Matrix<T> product = multiply_panels(Q);
    const Matrix<T> basis = orthonormal<T>(product.view(), execution_);
    if (basis.cols() == 0) return without_directions(std::move(arbitrary));
    const Matrix<double> small = inner_products<T>(basis.view(), product.view(), execution_);
    Matrix<double> gram(small.rows(), small.rows());
    set_product(Product::ABt, small.view(), small.view(), gram.view());
    const std::vector<double> values = symmetric_eigenvectors(gram.view());
    const Index kept = std::min(k, basis.cols());
    Matrix<double> rotation(basis.cols(), kept);
    for (Index j = 0; j < kept; ++j) {
      const Index from = basis.cols() - 1 - j;
      result_.values.push_back(std::sqrt(std::max(values[static_cast<std::size_t>(from)], 0.0)));
      for (Index i = 0; i < basis.cols(); ++i) rotation.row(i)[j] = gram.row(i)[from];
    }
    Matrix<T> out = Matrix<T>::uninitialised(size, kept);
    multiply_small<T>(basis.view(), std::as_const(rotation).view(), false, out.view(), execution_);
    for (Index j = 0; j < kept; ++j) {  // the largest element is positive
      T largest = 0;
      for (Index i = 0; i < size; ++i) {
        if (std::abs(out.row(i)[j]) > std::abs(largest)) largest = out.row(i)[j];
      }
      for (Index i = 0; largest < T(0) && i < size; ++i) out.row(i)[j] = -out.row(i)[j];
    }
    return out;
  }

  /// W = H^-1 B V with its certificate, panel by panel.
  void regress(const Matrix<T>& V, Matrix<double>& weights) {
    const Index panel = panel_of(V.cols());
    for (Index first = 0; first < V.cols(); first += panel) {
      const Index count = std::min(panel, V.cols() - first);
      Matrix<T> Q = Matrix<T>::uninitialised(V.rows(), count);
      copy(block(V.view(), 0, V.rows(), first, count), Q.view());
      const Matrix<T> B = right_side(std::as_const(Q).view());
      Y_.expand(std::as_const(Q).view(), rows_.view(), execution_);
      for (Index i = 0; i < rows_.rows(); ++i) {
        const double w = normal_.weights()[static_cast<std::size_t>(i)];
        for (Index c = 0; c < count; ++c) result_.objective += w * std::pow(static_cast<double>(rows_.row(i)[c]), 2);
      }
      Matrix<T> R = B;
      const Matrix<T> W = solve(R);
      certify(B, W);
      copy(W.view(), block(weights.view(), 0, W.rows(), first, count));
    }
    if (result_.gap > 0.0)
      result_.gap = ridge() > 0.0 ? result_.gap / ridge() : std::numeric_limits<double>::infinity();
  }

  /// Adds to the objective, and |B - H W|^2 to what the gap is computed of: with the residual R,
  /// |Y V - X W|^2 + ridge |W|^2 = |Y V|^2 - <W, B> - <W, R>, which is <R, H^-1 R> <= |R|^2 / ridge above its minimum.
  void certify(const Matrix<T>& B, const Matrix<T>& W) {
    Matrix<T> image = Matrix<T>::uninitialised(B.rows(), B.cols());
    normal_.apply(W.view(), ridge(), image.view(), execution_);
    std::vector<double> right(static_cast<std::size_t>(B.cols()), 0.0), left = right;
    for (Index i = 0; i < B.rows(); ++i) {
      for (Index c = 0; c < B.cols(); ++c) {
        const double b = static_cast<double>(B.row(i)[c]), r = b - static_cast<double>(image.row(i)[c]);
        result_.objective -= static_cast<double>(W.row(i)[c]) * (b + r);
        right[static_cast<std::size_t>(c)] += b * b;
        left[static_cast<std::size_t>(c)] += r * r;
      }
    }
    for (std::size_t c = 0; c < right.size(); ++c) {
      result_.gap += left[c];
      result_.residuals.push_back(right[c] > 0.0 ? std::sqrt(left[c] / right[c]) : 0.0);
    }
  }

  /// b = V^T mean(y) - W^T mean(x), without labels for pca.
  std::vector<double> intercepts(const Matrix<T>& V, const Matrix<double>& weights, bool pca) const {
    std::vector<double> out(static_cast<std::size_t>(V.cols()), 0.0);
    for (Index i = 0; !pca && i < V.rows(); ++i) {
      for (Index c = 0; c < V.cols(); ++c) {
        out[static_cast<std::size_t>(c)] += Y_.mean()[static_cast<std::size_t>(i)] * static_cast<double>(V.row(i)[c]);
      }
    }
    for (Index j = 0; j < weights.rows(); ++j) {
      for (Index c = 0; c < V.cols(); ++c) {
        out[static_cast<std::size_t>(c)] -= normal_.mean()[static_cast<std::size_t>(j)] * weights.row(j)[c];
      }
    }
    return out;
  }

  /// Mean and moments of the rows' embeddings, from the inputs themselves.
  void take_moments(const EmbeddingProblem& problem) {
    const Index n = input_rows(problem.X), k = result_.weights.cols();
    const Blocks parts(n, std::max(rows_per_block, (n + most_parts - 1) / most_parts));
    Matrix<double> sums(parts.number(), k);
    std::vector<Matrix<double>> squares(static_cast<std::size_t>(parts.number()));
    parallel_for(parts.number(), execution_, [&](Index part) {
      Matrix<double>& square = squares[static_cast<std::size_t>(part)] = Matrix<double>(k, k);
      const Blocks blocks(parts.length(part), rows_per_block);
      for (Index at = 0; at < blocks.number() && !interrupted(execution_); ++at) {
        const Index first = parts.first(part) + blocks.first(at);
        Matrix<double> Z(blocks.length(at), k);
        expand_rows(problem.X, first, std::as_const(result_.weights).view(), Z.view());
        for (Index i = 0; i < Z.rows(); ++i) {
          const double w = normal_.weights()[static_cast<std::size_t>(first + i)];
          for (Index c = 0; c < k; ++c) {
            const double z = Z.row(i)[c] + result_.intercepts[static_cast<std::size_t>(c)];
            sums.row(part)[c] += w * z;
            Z.row(i)[c] = std::sqrt(w) * z;
          }
        }
        add_product(Product::AtB, std::as_const(Z).view(), std::as_const(Z).view(), square.view());
      }
    });
    result_.mean.assign(static_cast<std::size_t>(k), 0.0);
    result_.moments = Matrix<double>(k, k);
    const double total = normal_.total_weight();
    for (Index part = 0; part < parts.number(); ++part) {
      for (Index c = 0; c < k; ++c) result_.mean[static_cast<std::size_t>(c)] += sums.row(part)[c] / total;
      const Matrix<double>& square = squares[static_cast<std::size_t>(part)];
      for (Index at = 0; at < k * k; ++at) result_.moments.data()[at] += square.data()[at] / total;
    }
    for (Index a = 0; a < k; ++a) {
      for (Index b = 0; b < k; ++b) {
        result_.moments.row(a)[b] -=
            result_.mean[static_cast<std::size_t>(a)] * result_.mean[static_cast<std::size_t>(b)];
      }
    }
    if (settings_.method != EmbeddingMethod::random) return;
    for (Index c = 0; c < k; ++c) result_.values.push_back(total * result_.moments.row(c)[c]);
  }

  const EmbeddingSettings& settings_;
  EmbeddingResult& result_;
  const Execution& execution_;
  LabelMatrix Y_;
  NormalEquations<T> normal_;
  Matrix<T> start_, rows_;
};

}  // namespace

template <class T>
EmbeddingResult fit_embedding(const EmbeddingProblem& problem, const EmbeddingSettings& settings,
                              const Execution& execution) {
  check(problem, settings);
  EmbeddingResult result;
  {
    const Stopwatch watch(result.seconds);
    Fit<T>(problem, settings, result, execution).run(problem);
  }
  return result;
}

template EmbeddingResult fit_embedding<float>(const EmbeddingProblem&, const EmbeddingSettings&, const Execution&);
template EmbeddingResult fit_embedding<double>(const EmbeddingProblem&, const EmbeddingSettings&, const Execution&);

}  // namespace taxolearn
