#include "ridge_path.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "gaussian.hpp"
#include "taxolearn/base/eigenvectors.hpp"
#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/base/product.hpp"

namespace taxolearn {
namespace {

constexpr Index probes = 16;
constexpr Index most_elements = 40'000'000;  // of a basis
constexpr Index least_blocks = 4, most_blocks = 16;
constexpr Index folds = 5;
constexpr Index many_rows = 20'000;  // from here on one fold tells enough
constexpr int points = 17;           // two per factor of ten
constexpr double least_ridge = 1e-6;
constexpr double indifference = 1e-3;  // the largest ridge whose error is within this share of the best

/// The columns of `next` after those of `basis`.
template <class T>
Matrix<T> beside(const Matrix<T>& basis, const Matrix<T>& next) {
  Matrix<T> out = Matrix<T>::uninitialised(next.rows(), basis.cols() + next.cols());
  copy(basis.view(), block(out.view(), 0, next.rows(), 0, basis.cols()));
  copy(next.view(), block(out.view(), 0, next.rows(), basis.cols(), next.cols()));
  return out;
}

/// next - basis basis^T next.
template <class T>
void take_off(const Matrix<T>& basis, Matrix<T>& next, const Execution& execution) {
  const Matrix<T>& from = next;
  Matrix<double> along = inner_products<T>(basis.view(), from.view(), execution);
  for (Index k = 0; k < along.size(); ++k) along.data()[k] = -along.data()[k];
  multiply_small<T>(basis.view(), along.view(), true, next.view(), execution);
}

/// Orthonormal basis of the space spanned by B, H B, ..., H^j B.
template <class T>
Matrix<T> krylov_basis(NormalEquations<T>& normal, const Matrix<T>& B, const Execution& execution) {
  const Index d = B.rows();
  const Index blocks = std::clamp(most_elements / std::max<Index>(d * probes, 1), least_blocks, most_blocks);
  Matrix<T> last = orthonormal<T>(B.view(), execution);
  Matrix<T> basis = last;
  for (Index at = 1; at < blocks && basis.cols() < d && last.cols() > 0; ++at) {
    Matrix<T> next = Matrix<T>::uninitialised(d, last.cols());
    normal.apply(std::as_const(last).view(), 0.0, next.view(), execution);
    for (int pass = 0; pass < 2; ++pass) take_off(basis, next, execution);
    next = orthonormal<T>(std::as_const(next).view(), execution);
    take_off(basis, next, execution);
    last = orthonormal<T>(std::as_const(next).view(), execution);
    if (basis.cols() + last.cols() > d) break;
    basis = beside(basis, last);
  }
  return basis;
}

}  // namespace

template <class T>
RidgePath ridge_path(NormalEquations<T>& normal, LabelMatrix& Y, std::uint64_t seed, const Execution& execution) {
  const Index n = Y.rows();
  const std::vector<double> weights = normal.weights();
  std::vector<Index> fold_of(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < fold_of.size(); ++i) fold_of[i] = static_cast<Index>(i) % folds;
  std::mt19937_64 random(seed);
  for (std::size_t i = fold_of.size(); i > 1; --i) std::swap(fold_of[i - 1], fold_of[random() % i]);
  const Matrix<T> Q = gaussian<T>(Y.classes(), probes, seed + 1);

  RidgePath path;
  for (int k = 0; k < points; ++k) path.ridges.push_back(least_ridge * std::pow(10.0, 0.5 * k));
  path.errors.assign(path.ridges.size(), 0.0);
  double left_out = 0.0;
  for (Index fold = 0; fold < (n >= many_rows ? 1 : folds); ++fold) {
    std::vector<double> train = weights, test = weights;
    double train_weight = 0.0, test_weight = 0.0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      (fold_of[i] == fold ? train : test)[i] = 0.0;
      train_weight += train[i];
      test_weight += test[i];
    }
    if (!(train_weight > 0.0 && test_weight > 0.0)) continue;
    normal.set_weights(std::move(train));
    Y.set_weights(normal.weights());
    Matrix<T> E = Matrix<T>::uninitialised(n, probes);
    Y.expand(Q.view(), E.view(), execution);
    const Matrix<T> target = E;
    Matrix<T> B = Matrix<T>::uninitialised(normal.features(), probes);
    normal.project(E.view(), B.view(), execution);
    double square = 0.0;
    for (Index i = 0; i < n; ++i) {
      for (Index c = 0; c < probes; ++c) {
        square += test[static_cast<std::size_t>(i)] * std::pow(static_cast<double>(target.row(i)[c]), 2);
      }
    }
    for (double& error : path.errors) error += square;
    left_out += test_weight;
    const Matrix<T> basis = krylov_basis(normal, B, execution);
    const Index r = basis.cols();
    if (r == 0) continue;

    Matrix<T> image = Matrix<T>::uninitialised(basis.rows(), r);
    normal.apply(basis.view(), 0.0, image.view(), execution);
    Matrix<double> vectors = inner_products<T>(basis.view(), std::as_const(image).view(), execution);
    const std::vector<double> values = symmetric_eigenvectors(vectors.view());
    multiply_small<T>(basis.view(), std::as_const(vectors).view(), false, image.view(), execution);
    const Matrix<double> right = inner_products<T>(std::as_const(image).view(), std::as_const(B).view(), execution);
    Matrix<T> predictions = Matrix<T>::uninitialised(n, r);
    normal.expand(std::as_const(image).view(), predictions.view(), execution);

    // |t - P G|^2 over rows left out = |t|^2 - 2 <P^T t, G> + <G, P^T P G>, where G = right / (values + ridge).
    Matrix<T> weighted = predictions;
    for (Index i = 0; i < n; ++i) {
      const auto w = static_cast<T>(test[static_cast<std::size_t>(i)]);
      for (Index c = 0; c < r; ++c) weighted.row(i)[c] *= w;
    }
    const Matrix<double> linear = inner_products<T>(std::as_const(weighted).view(), target.view(), execution);
    const Matrix<double> quadratic =
        inner_products<T>(std::as_const(weighted).view(), std::as_const(predictions).view(), execution);
    for (std::size_t k = 0; k < path.ridges.size(); ++k) {
      Matrix<double> G(r, probes), QG(r, probes);
      for (Index a = 0; a < r; ++a) {
        const double value = std::max(values[static_cast<std::size_t>(a)], 0.0) + path.ridges[k] * normal.unit();
        for (Index c = 0; c < probes; ++c) G.row(a)[c] = right.row(a)[c] / value;
      }
      set_product(Product::AB, quadratic.view(), std::as_const(G).view(), QG.view());
      double error = 0.0;
      for (Index at = 0; at < G.size(); ++at) error += G.data()[at] * (QG.data()[at] - 2.0 * linear.data()[at]);
      path.errors[k] += error;
    }
  }
  normal.set_weights(weights);
  Y.set_weights(weights);
  double least = left_out > 0.0 ? *std::min_element(path.errors.begin(), path.errors.end()) : 0.0;
  for (std::size_t k = 0; k < path.ridges.size(); ++k) {
    if (left_out > 0.0 && path.errors[k] <= (1.0 + indifference) * least) path.best = path.ridges[k];
    path.errors[k] /= std::max(left_out, 1e-300) * static_cast<double>(probes);
  }
  if (!(left_out > 0.0)) path.best = 1.0;
  return path;
}

template RidgePath ridge_path(NormalEquations<float>&, LabelMatrix&, std::uint64_t, const Execution&);
template RidgePath ridge_path(NormalEquations<double>&, LabelMatrix&, std::uint64_t, const Execution&);

}  // namespace taxolearn
