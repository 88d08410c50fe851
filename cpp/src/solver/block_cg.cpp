#include "taxolearn/solver/block_cg.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <limits>

#include "taxolearn/base/eigenvectors.hpp"
#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/base/product.hpp"

namespace taxolearn {
namespace {

constexpr Index most_parts = 32;  // sums of small matrices that are held at a time
constexpr Index rows_per_block = 512;

/// How far the square of a direction's part that is new may lie below that of the longest.
template <class T>
constexpr double negligible = sizeof(T) == sizeof(float) ? 1e-10 : 1e-13;

std::vector<double> column_norms(const Matrix<double>& gram) {
  std::vector<double> out(static_cast<std::size_t>(gram.cols()));
  for (Index j = 0; j < gram.cols(); ++j) out[static_cast<std::size_t>(j)] = std::sqrt(gram.row(j)[j]);
  return out;
}

template <class T>
std::vector<double> norms(DenseView<const T> A, const Execution& execution) {
  const Blocks blocks(A.rows, std::max(rows_per_block, (A.rows + most_parts - 1) / most_parts));
  Matrix<double> parts(blocks.number(), A.cols);
  parallel_for(blocks.number(), execution, [&](Index block) {
    double* const part = parts.row(block);
    for (Index i = blocks.first(block); i < blocks.first(block) + blocks.length(block); ++i) {
      for (Index j = 0; j < A.cols; ++j) part[j] += static_cast<double>(A.row(i)[j]) * static_cast<double>(A.row(i)[j]);
    }
  });
  std::vector<double> out(static_cast<std::size_t>(A.cols), 0.0);
  for (Index block = 0; block < blocks.number(); ++block) {
    for (Index j = 0; j < A.cols; ++j) out[static_cast<std::size_t>(j)] += parts.row(block)[j];
  }
  for (double& each : out) each = std::sqrt(each);
  return out;
}

/// U with U^T G U = 1 on the directions in which G, scaled to a unit diagonal, is not negligible.
Matrix<double> whitening(const Matrix<double>& G, double least) {
  const Index m = G.cols();
  const std::vector<double> lengths = column_norms(G);
  Matrix<double> vectors(m, m);
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < m; ++j) {
      const double length = lengths[static_cast<std::size_t>(i)] * lengths[static_cast<std::size_t>(j)];
      vectors.row(i)[j] = length > 0.0 ? G.row(i)[j] / length : 0.0;
    }
  }
  const std::vector<double> values = symmetric_eigenvectors(vectors.view());
  const double limit = least * std::max(values.empty() ? 0.0 : values.back(), std::numeric_limits<double>::min());
  const Index first =
      std::partition_point(values.begin(), values.end(), [limit](double v) { return v <= limit; }) - values.begin();
  Matrix<double> out(m, m - first);
  for (Index i = 0; i < m; ++i) {
    if (!(lengths[static_cast<std::size_t>(i)] > 0.0)) continue;
    for (Index j = 0; j < m - first; ++j) {
      const Index from = m - 1 - j;
      out.row(i)[j] = vectors.row(i)[from] /
                      (lengths[static_cast<std::size_t>(i)] * std::sqrt(values[static_cast<std::size_t>(from)]));
    }
  }
  return out;
}

Matrix<double> product(const Matrix<double>& A, const Matrix<double>& B) {
  Matrix<double> out(A.rows(), B.cols());
  set_product(Product::AB, A.view(), B.view(), out.view());
  return out;
}

}  // namespace

template <class T>
Matrix<double> inner_products(DenseView<const T> A, DenseView<const T> B, const Execution& execution) {
  assert(A.rows == B.rows);
  const Blocks parts(A.rows, std::max(rows_per_block, (A.rows + most_parts - 1) / most_parts));
  std::vector<Matrix<double>> sums(static_cast<std::size_t>(parts.number()));
  parallel_for(parts.number(), execution, [&](Index part) {
    Matrix<double>& sum = sums[static_cast<std::size_t>(part)] = Matrix<double>(A.cols, B.cols);
    Buffer<double> left, right;
    const Blocks blocks(parts.length(part), rows_per_block);
    for (Index block = 0; block < blocks.number(); ++block) {
      const Index first = parts.first(part) + blocks.first(block), count = blocks.length(block);
      add_product(Product::AtB, as_double(row_block(A, first, count), left),
                  as_double(row_block(B, first, count), right), sum.view());
    }
  });
  Matrix<double> out(A.cols, B.cols);
  for (const Matrix<double>& sum : sums) {
    std::transform(sum.data(), sum.data() + sum.size(), out.data(), out.data(), std::plus<double>());
  }
  return out;
}

template <class T>
void multiply_small(DenseView<const T> A, DenseView<const double> S, bool add, DenseView<T> out,
                    const Execution& execution) {
  assert(A.cols == S.rows && A.rows == out.rows && S.cols == out.cols);
  Matrix<T> small(S.rows, S.cols);
  copy(S, small.view());
  const DenseView<const T> right = static_cast<const Matrix<T>&>(small).view();
  const Blocks blocks(A.rows, rows_per_block);
  parallel_for(blocks.number(), execution, [&](Index block) {
    const DenseView<const T> left = row_block(A, blocks.first(block), blocks.length(block));
    const DenseView<T> to = row_block(out, blocks.first(block), blocks.length(block));
    if (add) {
      add_product(Product::AB, left, right, to);
    } else {
      set_product(Product::AB, left, right, to);
    }
  });
}

template <class T>
Matrix<T> orthonormal(DenseView<const T> A, const Execution& execution) {
  Matrix<T> out = Matrix<T>::uninitialised(A.rows, A.cols);
  copy(A, out.view());
  for (int pass = 0; pass < 3; ++pass) {  // what is left of the first two is rounding
    const DenseView<const T> from = static_cast<const Matrix<T>&>(out).view();
    const Matrix<double> U = whitening(inner_products(from, from, execution), pass == 0 ? negligible<T> : 0.0);
    Matrix<T> next = Matrix<T>::uninitialised(A.rows, U.cols());
    if (U.cols() == 0) return next;
    multiply_small(from, U.view(), false, next.view(), execution);
    out = std::move(next);
  }
  return out;
}

template <class T>
BlockCgResult block_cg(const BlockSystem<T>& system, DenseView<T> B, DenseView<T> X, double tolerance,
                       int max_iterations, const Execution& execution) {
  const Index d = B.rows, s = B.cols;
  const DenseView<T> R = B;
  clear(X);
  const std::vector<double> start = norms<T>(R, execution);
  Matrix<T> P, AP, Z = Matrix<T>::uninitialised(d, s), next = Matrix<T>::uninitialised(d, s);
  Matrix<double> inverse_root;  // W with (P W)^T A (P W) = 1
  BlockCgResult result;
  while (true) {
    const std::vector<double> now = norms<T>(R, execution);
    std::vector<Index> active;
    double worst = 0.0;
    for (Index j = 0; j < s; ++j) {
      const auto at = static_cast<std::size_t>(j);
      if (!(start[at] > 0.0)) continue;
      worst = std::max(worst, now[at] / start[at]);
      if (now[at] > tolerance * start[at]) active.push_back(j);
    }
    if (system.report && result.iterations > 0) system.report(result.iterations, worst);
    if (active.empty()) {
      result.converged = true;
      return result;
    }
    if (result.iterations == max_iterations) return result;

    // Z = D^-1 R of the active columns at length one, conjugate to the directions before.
    const auto count = static_cast<Index>(active.size());
    const DenseView<T> z(Z.data(), d, count);
    const Blocks blocks(d, rows_per_block);
    parallel_for(blocks.number(), execution, [&](Index block) {
      for (Index i = blocks.first(block); i < blocks.first(block) + blocks.length(block); ++i) {
        for (Index j = 0; j < count; ++j) {
          const Index from = active[static_cast<std::size_t>(j)];
          z.row(i)[j] =
              static_cast<T>(static_cast<double>(R.row(i)[from]) /
                             (system.diagonal[static_cast<std::size_t>(i)] * now[static_cast<std::size_t>(from)]));
        }
      }
    });
    if (P.cols() > 0) {
      const Matrix<double> along = inner_products<T>(static_cast<const Matrix<T>&>(AP).view(), z, execution);
      Matrix<double> beta(along.rows(), along.cols());
      set_product(Product::AB, inverse_root.view(), along.view(), beta.view(), -1.0);
      multiply_small<T>(static_cast<const Matrix<T>&>(P).view(), beta.view(), true, z, execution);
    }
    const Matrix<double> basis = whitening(inner_products<T>(z, z, execution), negligible<T>);
    if (basis.cols() == 0) return result;
    P = Matrix<T>::uninitialised(d, basis.cols());
    multiply_small<T>(z, basis.view(), false, P.view(), execution);
    AP = Matrix<T>::uninitialised(d, basis.cols());
    system.apply(static_cast<const Matrix<T>&>(P).view(), AP.view());
    ++result.iterations;

    const DenseView<const T> p = static_cast<const Matrix<T>&>(P).view(), ap = static_cast<const Matrix<T>&>(AP).view();
    const Matrix<double> root = whitening(inner_products<T>(p, ap, execution), negligible<T>);
    if (root.cols() == 0) return result;  // A is zero in all directions that are left
    inverse_root = Matrix<double>(root.rows(), root.rows());
    set_product(Product::ABt, root.view(), root.view(), inverse_root.view());
    Matrix<double> alpha = product(inverse_root, inner_products<T>(p, R, execution));
    multiply_small<T>(p, alpha.view(), true, X, execution);
    std::transform(alpha.data(), alpha.data() + alpha.size(), alpha.data(), std::negate<double>());
    multiply_small<T>(ap, alpha.view(), true, R, execution);
  }
}

#define TAXOLEARN_INSTANTIATE(T)                                                                                     \
  template BlockCgResult block_cg(const BlockSystem<T>&, DenseView<T>, DenseView<T>, double, int, const Execution&); \
  template Matrix<double> inner_products(DenseView<const T>, DenseView<const T>, const Execution&);                  \
  template void multiply_small(DenseView<const T>, DenseView<const double>, bool, DenseView<T>, const Execution&);   \
  template Matrix<T> orthonormal(DenseView<const T>, const Execution&);
TAXOLEARN_INSTANTIATE(float)
TAXOLEARN_INSTANTIATE(double)
#undef TAXOLEARN_INSTANTIATE

}  // namespace taxolearn
