#include "taxolearn/operators/low_rank.hpp"

#include <algorithm>
#include <type_traits>

#include "matrix_block.hpp"
#include "taxolearn/base/check.hpp"
#include "taxolearn/base/vector.hpp"

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
      auto own = block(sum(segment), right.first(b), right.length(b), left.first(a), left.length(a));
      const Blocks parts(rows.length(segment), rows_per_block);
      for (Index part = 0; part < parts.number(); ++part) {
        const Index first = start + rows.first(segment) + parts.first(part);
        own.noalias() += block(S, first, parts.length(part), right.first(b), right.length(b)).transpose() *
                         block(A, first, parts.length(part), left.first(a), left.length(a));
      }
    });
  }
  auto result = block(W, 0, W.rows, 0, W.cols);
  result.setZero();
  for (Index segment = 0; segment < segments; ++segment) {
    result += block(sum(segment), 0, S.cols, 0, A.cols).transpose();
  }
}

/// L_I, with zeros above its diagonal.
RowMajor<double> pivot_triangle(const LowRankFactor& factor) {
  const Index r = factor.rank();
  RowMajor<double> triangle(r, r);
  for (Index j = 0; j < r; ++j) triangle.row(j) = block(factor.L.view(), factor.pivots[position(j)], 1, 0, r);
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
  const RowMajor<double> triangle = pivot_triangle(factor);
  const Blocks blocks(S.cols, columns_per_solve);
  parallel_for(blocks.number(), execution, [&](Index b) {
    auto columns = block(coefficients.view(), 0, factor.rank(), blocks.first(b), blocks.length(b));
    triangle.transpose().triangularView<Eigen::Upper>().solveInPlace(columns);
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
    : kernel_(std::move(kernel)), rows_{X, {}}, factor_(std::move(factor)) {
  require(factor_->L.rows() == input_rows(X), "factor has ", factor_->L.rows(), " rows, expected ", input_rows(X),
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
  using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;
  const Blocks blocks(rows(), rows_per_block);
  parallel_for(blocks.number(), execution, [&](Index b) {
    const Index first = blocks.first(b);
    const Index count = blocks.length(b);
    auto result = block(out, first, count, 0, S.cols);
    result.noalias() =
        Eigen::Map<const Vector>(residual_.data() + first, count).asDiagonal() * block(S, first, count, 0, S.cols);
    if (shift != nullptr) result.rowwise() += Eigen::Map<const Vector>(shift, S.cols).transpose();
    result.noalias() += block(L_, first, count, 0, rank()) * block(coefficients, 0, rank(), 0, S.cols);
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
    const RowMajor<double> product =
        block(part.view(), 0, part.rows(), 0, rank()) * block(coefficients.view(), 0, rank(), 0, S.cols);
    block(out, blocks.first(b), part.rows(), 0, S.cols) = product.template cast<T>();
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
  Eigen::VectorXd q(n);
  for (Index i = 0; i < n; ++i) q[i] = dot_block(e.row(i), f.row(i), m);
  std::fill_n(gradient, parameters(), 0.0);
  kernel_->diag_gradient(rows_, q.data(), gradient);
  if (r == 0) return;

  const Matrix<double> e_basis = basis_coefficients(*factor_, e.view(), execution);
  const Matrix<double> f_basis = basis_coefficients(*factor_, f.view(), execution);
  const auto E_basis = block(e_basis.view(), 0, r, 0, m);
  const auto F_basis = block(f_basis.view(), 0, r, 0, m);
  const RowMajor<double> triangle = pivot_triangle(*factor_);
  const InputRows pivots = basis();

  // Calls entries.gradient for rows cut into blocks; weigh(first, count) gives their Q.
  const auto add_gradient = [&](const KernelEntries<double>& entries, Index start, Index count, const auto& weigh) {
    const Blocks blocks(count, rows_per_gradient);
    Matrix<double> parts(blocks.number(), parameters());
    parallel_for(blocks.number(), execution, [&](Index b) {
      const RowMajor<double> Q = weigh(start + blocks.first(b), blocks.length(b));
      entries.gradient(start + blocks.first(b), 0, DenseView<const double>(Q.data(), Q.rows(), Q.cols()), parts.row(b));
    });
    for (Index b = 0; b < blocks.number(); ++b) axpy_block(1.0, parts.row(b), gradient, parameters());
  };

  Matrix<double> inner(r, r);  // H^T diag(q) H, lower blocks
  RowMajor<double> H(std::min(n, rows_per_segment), r);
  const auto entries = kernel_->double_entries(rows_, pivots, execution);
  const Blocks segments(n, rows_per_segment);
  for (Index segment = 0; segment < segments.number(); ++segment) {
    const Index start = segments.first(segment);
    const Index length = segments.length(segment);
    add_gradient(*entries, start, length, [&](Index first, Index count) {
      auto own = H.middleRows(first - start, count);
      own = block(factor_->L.view(), first, count, 0, r);
      triangle.triangularView<Eigen::Lower>().template solveInPlace<Eigen::OnTheRight>(own);
      RowMajor<double> Q = q.segment(first, count).asDiagonal() * own;
      Q *= -2.0;
      Q.noalias() += block(e.view(), first, count, 0, m) * F_basis.transpose();
      Q.noalias() += block(f.view(), first, count, 0, m) * E_basis.transpose();
      return Q;
    });
    const Blocks columns(r, columns_per_tile);
    parallel_for(columns.number(), execution, [&](Index b) {
      const Index first = columns.first(b);
      const RowMajor<double> weighted =
          q.segment(start, length).asDiagonal() * H.block(0, first, length, columns.length(b));
      block(inner.view(), first, r - first, first, columns.length(b)).noalias() +=
          H.block(0, first, length, r - first).transpose() * weighted;
    });
  }
  for (Index i = 0; i < r; ++i) {
    for (Index j = i + 1; j < r; ++j) inner.row(i)[j] = inner.row(j)[i];
  }
  const auto pivot_entries = kernel_->double_entries(pivots, pivots, execution);
  add_gradient(*pivot_entries, 0, r, [&](Index first, Index count) {
    RowMajor<double> Q = block(inner.view(), first, count, 0, r);
    Q.noalias() -= E_basis.middleRows(first, count) * F_basis.transpose();
    return Q;
  });
}

template <class T>
void LowRank<T>::select(const std::vector<Index>& rows, const Execution& execution) {
  const Index n = input_rows(rows_.X);
  require(!rows.empty(), "rows is empty, expected at least one row to select");
  std::vector<char> seen(position(n), 0);
  for (const Index i : rows) {
    require(i >= 0 && i < n, "rows contains ", i, ", expected indices in [0, ", n, ")");
    require(seen[position(i)] == 0, "rows contains ", i, " twice");
    seen[position(i)] = 1;
  }
  InputRows active{rows_.X, rows};
  factor_ = std::make_shared<LowRankFactor>(
      incomplete_cholesky(*kernel_, active, factor_->max_rank, factor_->tolerance, execution));
  rows_ = std::move(active);
  arrange(execution);
}

template class LowRank<float>;
template class LowRank<double>;

}  // namespace taxolearn
