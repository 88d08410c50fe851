#include "taxolearn/operators/low_rank.hpp"

#include <algorithm>
#include <type_traits>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/base/product.hpp"
#include "taxolearn/base/triangular.hpp"
#include "taxolearn/base/vector.hpp"
#include "taxolearn/operators/subset.hpp"

namespace taxolearn {
namespace {

constexpr Index rows_per_block = 512;
constexpr Index columns_per_solve = 16;

// Of the product L^T S.
constexpr Index features_per_tile = 512;
constexpr Index columns_per_tile = 128;
constexpr Index rows_per_stretch = 16384;
constexpr Index tasks_wanted = 8;  // enough to keep the threads busy

// Derivatives: rows whose H is held at a time, and rows of one call of the kernel.
constexpr Index rows_per_segment = 4096;
constexpr Index rows_per_gradient = 128;

std::size_t position(Index i) { return static_cast<std::size_t>(i); }

/// W = A^T S by tiles of W. Where these are few, segments of rows have sums of their own, added in order; rows go in
/// stretches, so that no task is long.
template <class T>
void project(DenseView<const T> A, DenseView<const T> S, DenseView<T> W, Buffer<T>& partial,
             const Execution& execution) {
  const Blocks left(A.cols, features_per_tile);
  const Blocks right(S.cols, columns_per_tile);
  const Index tiles = left.number() * right.number();
  const Index segments = std::clamp<Index>(tasks_wanted / std::max<Index>(tiles, 1), 1, tasks_wanted);
  partial.assign(position(segments * S.cols * A.cols), T(0));
  const auto sum = [&](Index segment) {
    return DenseView<T>(partial.data() + segment * S.cols * A.cols, S.cols, A.cols);
  };
  const Blocks stretches(A.rows, rows_per_stretch);
  for (Index stretch = 0; stretch < stretches.number(); ++stretch) {
    const Index start = stretches.first(stretch);
    const Index length = stretches.length(stretch);
    const Blocks rows(length, (length + segments - 1) / segments);
    parallel_for(tiles * rows.number(), execution, [&](Index task) {
      const Index segment = task % rows.number();
      const Index a = task / rows.number() % left.number();
      const Index b = task / rows.number() / left.number();
      const auto own = block(sum(segment), right.first(b), right.length(b), left.first(a), left.length(a));
      const Blocks parts(rows.length(segment), rows_per_block);
      for (Index part = 0; part < parts.number(); ++part) {
        const Index first = start + rows.first(segment) + parts.first(part);
        add_product(Product::AtB, block(S, first, parts.length(part), right.first(b), right.length(b)),
                    block(A, first, parts.length(part), left.first(a), left.length(a)), own);
      }
    });
  }
  clear(W);
  for (Index segment = 0; segment < segments; ++segment) {
    for (Index j = 0; j < W.rows; ++j) {
      T* const row = W.row(j);
      for (Index c = 0; c < W.cols; ++c) row[c] += sum(segment).row(c)[j];
    }
  }
}

/// L_I, with zeros above its diagonal.
Matrix<double> pivot_triangle(const LowRankFactor& factor) {
  const Index r = factor.rank();
  Matrix<double> triangle(r, r);
  for (Index j = 0; j < r; ++j) std::copy_n(factor.L.row(factor.pivots[position(j)]), r, triangle.row(j));
  return triangle;
}

template <class T>
Matrix<double> in_double(DenseView<const T> S, const Execution& execution) {
  Matrix<double> copy(S.rows, S.cols);
  const Blocks blocks(S.rows, rows_per_block);
  parallel_for(blocks.number(), execution, [&](Index b) {
    for (Index i = blocks.first(b); i < blocks.first(b) + blocks.length(b); ++i) {
      convert_block(S.row(i), copy.row(i), S.cols);
    }
  });
  return copy;
}

}  // namespace

Matrix<double> basis_coefficients(const LowRankFactor& factor, DenseView<const double> S, const Execution& execution) {
  require_shape("S", S, factor.L.rows(), S.cols);
  Matrix<double> coefficients(factor.rank(), S.cols);
  if (factor.rank() == 0) return coefficients;
  Buffer<double> partial;
  project(factor.L.view(), S, coefficients.view(), partial, execution);
  const Matrix<double> triangle = pivot_triangle(factor);
  const Blocks blocks(S.cols, columns_per_solve);
  parallel_for(blocks.number(), execution, [&](Index b) {
    solve_lower_transposed(triangle.view(),
                           block(coefficients.view(), 0, factor.rank(), blocks.first(b), blocks.length(b)));
  });
  return coefficients;
}

template <class T>
LowRank<T>::LowRank(std::shared_ptr<const Kernel> kernel, const InputView& X, Index max_rank, double tolerance,
                    const Execution& execution)
    : kernel_(std::move(kernel)), rows_{X, {}} {
  factor_ = std::make_shared<LowRankFactor>(incomplete_cholesky(*kernel_, rows_, max_rank, tolerance, execution));
  arrange(execution);
}

template <class T>
LowRank<T>::LowRank(std::shared_ptr<const Kernel> kernel, const InputView& X,
                    std::shared_ptr<const LowRankFactor> factor, const Execution& execution)
    : LowRank(std::move(kernel), InputRows{X, {}}, std::move(factor), execution) {}

template <class T>
LowRank<T>::LowRank(std::shared_ptr<const Kernel> kernel, InputRows rows, std::shared_ptr<const LowRankFactor> factor,
                    const Execution& execution)
    : kernel_(std::move(kernel)), rows_(std::move(rows)), factor_(std::move(factor)) {
  require(factor_->L.rows() == rows_.count(), "factor has ", factor_->L.rows(), " rows, expected ", rows_.count(),
          ", those of X");
  arrange(execution);
}

template <class T>
void LowRank<T>::arrange(const Execution& execution) {
  const Matrix<double>& L = factor_->L;
  if constexpr (std::is_same_v<T, double>) {
    L_ = L.view();
  } else {
    copy_.resize(position(L.size()));
    convert(L.data(), copy_.data(), L.size(), execution);
    L_ = DenseView<const T>(copy_.data(), L.rows(), L.cols());
  }
  residual_.resize(factor_->residual.size());
  convert_block(factor_->residual.data(), residual_.data(), L.rows());
}

template <class T>
InputRows LowRank<T>::basis() const {
  return pick_rows(rows_, factor_->pivots);
}

template <class T>
void LowRank<T>::apply(DenseView<const T> S, DenseView<T> out, const T* shift, const Execution& execution) {
  require_shape("S", S, rows(), S.cols);
  require_shape("out", out, rows(), S.cols);
  coefficients_.resize(position(rank() * S.cols));
  const DenseView<T> coefficients(coefficients_.data(), rank(), S.cols);
  project(L_, S, coefficients, partial_, execution);
  const Blocks blocks(rows(), rows_per_block);
  parallel_for(blocks.number(), execution, [&](Index b) {
    const Index first = blocks.first(b);
    const Index count = blocks.length(b);
    for (Index i = first; i < first + count; ++i) {
      const T residual = residual_[position(i)];
      const T* const from = S.row(i);
      T* const to = out.row(i);
#pragma omp simd
      for (Index c = 0; c < S.cols; ++c) to[c] = residual * from[c] + (shift != nullptr ? shift[c] : T(0));
    }
    add_product(Product::AB, row_block(L_, first, count), coefficients, row_block(out, first, count));
  });
}

template <class T>
void LowRank<T>::apply_cross(const InputView& Xnew, DenseView<const T> S, DenseView<T> out,
                             const Execution& execution) {
  require_shape("S", S, rows(), S.cols);
  require_shape("out", out, input_rows(Xnew), S.cols);
  if (rank() == 0) {
    for (Index i = 0; i < out.rows; ++i) std::fill(out.row(i), out.row(i) + out.cols, T(0));
    return;
  }
  const Matrix<double> coefficients = basis_coefficients(*factor_, in_double(S, execution).view(), execution);
  const InputRows fresh{Xnew, {}};
  const InputRows pivots = basis();
  const auto entries = kernel_->double_entries(fresh, pivots, execution);
  const Blocks blocks(out.rows, rows_per_gradient);
  parallel_for(blocks.number(), execution, [&](Index b) {
    Matrix<double> part(blocks.length(b), rank());
    entries->block(blocks.first(b), 0, part.view());
    Matrix<double> product(part.rows(), S.cols);
    add_product(Product::AB, part.view(), coefficients.view(), product.view());
    copy(product.view(), row_block(out, blocks.first(b), part.rows()));
  });
}

// With Q = E F^T, q = diag Q, Q' = Q - diag q and H = B A^-1 = L L_I^-1,
//   d tr(E^T M~ F) = <(Q' + Q'^T) H, dB> - <H^T Q' H, dA> + sum_i q_i dM_ii.
// Q H = E (F^T H) and F^T H is the transpose of the basis coefficients of F. The part of diag q needs H itself.
template <class T>
void LowRank<T>::bilinear_grad(DenseView<const T> E, DenseView<const T> F, double* gradient,
                               const Execution& execution) {
  require_shape("E", E, rows(), E.cols);
  require_shape("F", F, rows(), E.cols);
  const Index n = rows();
  const Index r = rank();
  const Index m = E.cols;
  const Matrix<double> e = in_double(E, execution);
  const Matrix<double> f = in_double(F, execution);
  std::vector<double> q(position(n));
  for (Index i = 0; i < n; ++i) q[position(i)] = dot_block(e.row(i), f.row(i), m);
  std::fill_n(gradient, parameters(), 0.0);
  kernel_->diag_gradient(rows_, q.data(), gradient);
  if (r == 0) return;

  const Matrix<double> e_basis = basis_coefficients(*factor_, e.view(), execution);
  const Matrix<double> f_basis = basis_coefficients(*factor_, f.view(), execution);
  const Matrix<double> triangle = pivot_triangle(*factor_);
  const InputRows pivots = basis();

  // Calls entries.gradient for rows cut into blocks; weigh(first, their Q) sets it.
  const auto add_gradient = [&](const KernelEntries<double>& entries, Index start, Index count, const auto& weigh) {
    const Blocks blocks(count, rows_per_gradient);
    Matrix<double> parts(blocks.number(), parameters());
    parallel_for(blocks.number(), execution, [&](Index b) {
      Matrix<double> Q(blocks.length(b), r);
      weigh(start + blocks.first(b), Q.view());
      entries.gradient(start + blocks.first(b), 0, Q.view(), parts.row(b));
    });
    for (Index b = 0; b < blocks.number(); ++b) axpy_block(1.0, parts.row(b), gradient, parameters());
  };

  Matrix<double> inner(r, r);  // H^T diag(q) H, lower blocks
  Matrix<double> H(std::min(n, rows_per_segment), r);
  // to = scale diag(q) from, with the q of the rows from first on
  const auto weighted = [&](double scale, Index first, DenseView<const double> from, DenseView<double> to) {
    for (Index i = 0; i < to.rows; ++i) {
      const double factor = scale * q[position(first + i)];
      for (Index j = 0; j < to.cols; ++j) to.row(i)[j] = factor * from.row(i)[j];
    }
  };
  const auto entries = kernel_->double_entries(rows_, pivots, execution);
  const Blocks segments(n, rows_per_segment);
  for (Index segment = 0; segment < segments.number(); ++segment) {
    const Index start = segments.first(segment);
    const Index length = segments.length(segment);
    add_gradient(*entries, start, length, [&](Index first, DenseView<double> Q) {
      const DenseView<double> own = row_block(H.view(), first - start, Q.rows);
      copy(block(factor_->L.view(), first, Q.rows, 0, r), own);
      solve_lower_right(triangle.view(), own);
      weighted(-2.0, first, own, Q);
      add_product(Product::ABt, row_block(e.view(), first, Q.rows), f_basis.view(), Q);
      add_product(Product::ABt, row_block(f.view(), first, Q.rows), e_basis.view(), Q);
    });
    const Blocks columns(r, columns_per_tile);
    parallel_for(columns.number(), execution, [&](Index b) {
      const Index first = columns.first(b);
      Matrix<double> right(length, columns.length(b));
      weighted(1.0, start, block(H.view(), 0, length, first, right.cols()), right.view());
      add_product(Product::AtB, block(H.view(), 0, length, first, r - first), right.view(),
                  block(inner.view(), first, r - first, first, right.cols()));
    });
  }
  for (Index i = 0; i < r; ++i) {
    for (Index j = i + 1; j < r; ++j) inner.row(i)[j] = inner.row(j)[i];
  }
  const auto pivot_entries = kernel_->double_entries(pivots, pivots, execution);
  add_gradient(*pivot_entries, 0, r, [&](Index first, DenseView<double> Q) {
    copy(row_block(inner.view(), first, Q.rows), Q);
    add_product(Product::ABt, row_block(e_basis.view(), first, Q.rows), f_basis.view(), Q, -1.0);
  });
}

template <class T>
std::unique_ptr<Operator<T>> LowRank<T>::subset(const std::vector<Index>& rows, const Execution& execution) {
  InputRows chosen = subset_of(rows_, rows);
  auto factor = std::make_shared<const LowRankFactor>(
      incomplete_cholesky(*kernel_, chosen, factor_->max_rank, factor_->tolerance, execution));
  return std::make_unique<LowRank>(kernel_, std::move(chosen), std::move(factor), execution);
}

template class LowRank<float>;
template class LowRank<double>;

}  // namespace taxolearn
