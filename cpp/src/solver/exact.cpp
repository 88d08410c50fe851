#include "taxolearn/solver/exact.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/base/product.hpp"
#include "taxolearn/base/triangular.hpp"
#include "taxolearn/base/vector.hpp"

namespace taxolearn {
namespace {

// LAPACK is not called for these: it cannot be interrupted, and BLAS called by tiles was slower than the products here.
constexpr Index tile = 128;            // of the Cholesky factorization and of triangular systems
constexpr Index inverse_columns = 64;  // of an inverse, solved for together

/// A = L L^T, in place and by tiles, so that the threads share the work and the monitor is asked often. Reads and
/// writes the lower triangle and the tiles on the diagonal. False if A is not positive definite.
bool factor_in_place(DenseView<double> A, const Execution& execution) {
  const Blocks tiles(A.rows, tile);
  const auto part = [&](Index i, Index j) {
    return block(A, tiles.first(i), tiles.length(i), tiles.first(j), tiles.length(j));
  };
  for (Index k = 0; k < tiles.number(); ++k) {
    Matrix<double> corner(tiles.length(k), tiles.length(k));  // what all others look at, close together
    copy(part(k, k), corner.view());
    if (!factor_cholesky(corner.view())) return false;
    copy(corner.view(), part(k, k));
    const Index below = tiles.number() - k - 1;
    parallel_for(below, execution, [&](Index i) { solve_lower_transposed_right(corner.view(), part(k + 1 + i, k)); });
    parallel_for(below * below, execution, [&](Index task) {
      const Index i = k + 1 + task / below;
      const Index j = k + 1 + task % below;
      if (j <= i) add_product(Product::ABt, part(i, k), part(j, k), part(i, j), -1.0);
    });
  }
  return true;
}

/// Copies the lower triangle to the upper one.
void mirror_lower(DenseView<double> A, const Execution& execution) {
  const Blocks blocks(A.rows, tile);
  parallel_for(blocks.number(), execution, [&](Index b) {
    const Index first = blocks.first(b);
    const Index count = blocks.length(b);
    copy_transposed(block(A, first, count, 0, first), block(A, 0, first, first, count));
    for (Index i = first; i < first + count; ++i) {
      for (Index j = first; j < i; ++j) A.row(j)[i] = A.row(i)[j];
    }
  });
}

/// B = (L L^T)^-1 B, given L with L^T above its diagonal: the products read rows of both as they lie in memory.
void solve_mirrored(DenseView<const double> L, DenseView<double> B) {
  const Blocks tiles(L.rows, tile);
  for (Index k = 0; k < tiles.number(); ++k) {
    const Index first = tiles.first(k);
    const Index count = tiles.length(k);
    const DenseView<double> own = row_block(B, first, count);
    add_product(Product::AB, block(L, first, count, 0, first), row_block(B, 0, first), own, -1.0);
    solve_lower(block(L, first, count, first, count), own);
  }
  for (Index k = tiles.number(); k-- > 0;) {
    const Index first = tiles.first(k);
    const Index count = tiles.length(k);
    const Index end = first + count;
    const DenseView<double> own = row_block(B, first, count);
    add_product(Product::AB, block(L, first, count, end, L.rows - end), row_block(B, end, L.rows - end), own, -1.0);
    solve_lower_transposed(block(L, first, count, first, count), own);
  }
}

/// out = diag(scale) (L L^T)^-1 diag(scale), both triangles. Columns from j on need the rows from j on only. Writes L^T
/// above the diagonal of L.
void scaled_inverse(DenseView<double> L, const double* scale, DenseView<double> out, const Execution& execution) {
  const Index n = L.rows;
  mirror_lower(L, execution);
  const Blocks blocks(n, inverse_columns);
  parallel_for(blocks.number(), execution, [&](Index b) {
    const Index first = blocks.first(b);
    const Index width = blocks.length(b);
    const Index below = n - first;
    Matrix<double> columns(below, width);
    for (Index k = 0; k < width; ++k) columns.row(k)[k] = scale[first + k];
    solve_mirrored(block(L, first, below, first, below), columns.view());
    for (Index i = 0; i < below; ++i) {
      const double factor = scale[first + i];
      double* const row = columns.row(i);
#pragma omp simd
      for (Index k = 0; k < width; ++k) row[k] *= factor;
    }
    copy(columns.view(), block(out, first, below, first, width));
    copy_transposed(row_block(columns.view(), width, below - width),
                    block(out, first, width, first + width, below - width));
  });
}

}  // namespace

ExactSystem::ExactSystem(std::vector<DenseView<const double>> matrices, std::vector<Index> matrix_of_class, Index rows)
    : matrices_(std::move(matrices)), matrix_of_class_(std::move(matrix_of_class)), rows_(rows) {
  require(rows_ >= 1, "rows is ", rows_, ", expected at least 1");
  require(!matrix_of_class_.empty(), "matrix_of_class is empty, expected one index per class");
  for (const DenseView<const double>& matrix : matrices_) require_shape("matrix", matrix, rows_, rows_);
  const Index number = static_cast<Index>(matrices_.size());
  for (const Index l : matrix_of_class_) {
    require(l >= 0 && l < number, "matrix_of_class contains ", l, ", expected indices in [0, ", number, ")");
  }
}

void ExactSystem::prepare(const double* D) {
  const Index n = rows_;
  const Index C = classes();
  factored_ = false;
  inner_.resize(static_cast<std::size_t>(C * n * n));
  root_D_.resize(static_cast<std::size_t>(C * n));
  vectors_.resize(static_cast<std::size_t>(C * n));
  for (Index i = 0; i < n; ++i) {
    for (Index c = 0; c < C; ++c) {
      const double value = D[i * C + c];
      require(std::isfinite(value) && value >= 0.0, "D[", i, ", ", c, "] is ", value,
              ", expected a finite number >= 0");
      root_D_[static_cast<std::size_t>(c * n + i)] = std::sqrt(value);
    }
  }
}

/// A = the Cholesky factor of A_c.
void ExactSystem::factor_class(Index c, DenseView<double> A, const Execution& execution) {
  const Index l = matrix_of_class_[static_cast<std::size_t>(c)];
  const DenseView<const double>& K = matrices_[static_cast<std::size_t>(l)];
  const double* const root_D = root_D_.data() + c * rows_;
  const Blocks blocks(rows_, tile);
  parallel_for(blocks.number(), execution, [&](Index b) {
    for (Index i = blocks.first(b); i < blocks.first(b) + blocks.length(b); ++i) {
      double* const row = A.row(i);
      for (Index j = 0; j <= i; ++j) row[j] = root_D[i] * K.row(i)[j] * root_D[j];
      row[i] += 1.0;
    }
  });
  require(factor_in_place(A, execution), "matrix ", l, " (of class ", c,
          ") is not positive semidefinite or not finite; the exact method needs kernels without negative "
          "eigenvalues");
}

void ExactSystem::factor_diagonal(const double* D, const Execution& execution) {
  prepare(D);
  for (Index c = 0; c < classes(); ++c) factor_class(c, inner(c), execution);
  rank_one_ = false;
  factored_ = true;
}

void ExactSystem::factor_diagonal_minus_rank_one(const double* D, const Execution& execution) {
  const Index n = rows_;
  const Index C = classes();
  prepare(D);
  sum_.resize(static_cast<std::size_t>(n * n));
  scratch_.resize(sum_.size());
  root_weight_.resize(static_cast<std::size_t>(n));
  root_pi_.resize(root_D_.size());
  products_.resize(root_D_.size());
  correction_.resize(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i) {
    double sum = 0.0;
    for (Index c = 0; c < C; ++c) sum += D[i * C + c];
    root_weight_[static_cast<std::size_t>(i)] = std::sqrt(sum);
    // Where nothing counts, any distribution will do.
    for (Index c = 0; c < C; ++c) {
      const double pi = sum > 0.0 ? D[i * C + c] / sum : 1.0 / static_cast<double>(C);
      root_pi_[static_cast<std::size_t>(c * n + i)] = std::sqrt(pi);
    }
  }

  const DenseView<double> A(scratch_.data(), n, n);
  for (Index c = 0; c < C; ++c) {
    factor_class(c, A, execution);
    scaled_inverse(A, root_pi_.data() + c * n, inner(c), execution);
  }

  const Blocks blocks(n, tile);
  parallel_for(blocks.number(), execution, [&](Index b) {
    const Index first = blocks.first(b) * n;
    double* const sum = sum_.data() + first;
    std::fill_n(sum, blocks.length(b) * n, 0.0);
    for (Index c = 0; c < C; ++c) axpy_block(1.0, inner(c).data + first, sum, blocks.length(b) * n);
  });
  require(factor_in_place(DenseView<double>(sum_.data(), n, n), execution),
          "the sum over classes is not positive definite to rounding: kernels are too large for the exact method; "
          "choose smaller variances or the iterative method");
  rank_one_ = true;
  factored_ = true;
}

void ExactSystem::multiply_inner(const double* vectors, Index stride, double* out, const Execution& execution) {
  const Blocks blocks(rows_, tile);
  parallel_for(blocks.number() * classes(), execution, [&](Index task) {
    const Index c = task / blocks.number();
    const Index first = blocks.first(task % blocks.number());
    const Index count = blocks.length(task % blocks.number());
    set_product(Product::AB, row_block(inner(c), first, count), DenseView<const double>(vectors + c * stride, rows_, 1),
                DenseView<double>(out + c * rows_ + first, count, 1));
  });
}

void ExactSystem::solve_diagonal(const double* g, const double* Kg, double* s, const Execution& execution) {
  const Index n = rows_;
  const Index C = classes();
  parallel_for(C, execution, [&](Index c) {
    const double* const root_D = root_D_.data() + c * n;
    const DenseView<double> x(vectors_.data() + c * n, n, 1);
    for (Index i = 0; i < n; ++i) x.data[i] = root_D[i] * Kg[i * C + c];
    solve_lower(inner(c), x);
    solve_lower_transposed(inner(c), x);
  });
  for (Index i = 0; i < n; ++i) {
    for (Index c = 0; c < C; ++c) {
      const auto place = static_cast<std::size_t>(c * n + i);
      s[i * C + c] = -g[i * C + c] + root_D_[place] * vectors_[place];
    }
  }
}

void ExactSystem::solve(const double* g, const double* Kg, double* s, const Execution& execution) {
  require(factored_, "solve() was called before one of the factor functions");
  if (!rank_one_) {
    solve_diagonal(g, Kg, s, execution);
    return;
  }
  const Index n = rows_;
  const Index C = classes();
  const auto at = [n](Index i, Index c) { return static_cast<std::size_t>(c * n + i); };
  for (Index i = 0; i < n; ++i) {
    const double weight = root_weight_[static_cast<std::size_t>(i)];
    for (Index c = 0; c < C; ++c) vectors_[at(i, c)] = weight * Kg[i * C + c];
  }
  multiply_inner(vectors_.data(), n, products_.data(), execution);

  const DenseView<double> correction(correction_.data(), n, 1);
  clear(correction);
  for (Index c = 0; c < C; ++c) axpy_block(1.0, products_.data() + c * n, correction_.data(), n);
  const DenseView<double> L(sum_.data(), n, n);
  solve_lower(L, correction);
  solve_lower_transposed(L, correction);

  multiply_inner(correction_.data(), 0, vectors_.data(), execution);
  for (Index i = 0; i < n; ++i) {
    const double weight = root_weight_[static_cast<std::size_t>(i)];
    for (Index c = 0; c < C; ++c) {
      s[i * C + c] = -g[i * C + c] + weight * (products_[at(i, c)] - vectors_[at(i, c)]);
    }
  }
}

}  // namespace taxolearn
