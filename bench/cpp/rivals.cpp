#include "rivals.hpp"

#include <algorithm>

#include "taxolearn/base/parallel.hpp"

namespace taxolearn::bench {
namespace {

template <class T>
void multiply_vector(const Csr<T>& A, const T* x, T* out) {
  for (Index i = 0; i < A.rows; ++i) {
    T sum = 0;
    for (Index k = A.offsets[static_cast<std::size_t>(i)]; k < A.offsets[static_cast<std::size_t>(i) + 1]; ++k) {
      sum += A.values[static_cast<std::size_t>(k)] * x[A.columns[static_cast<std::size_t>(k)]];
    }
    out[i] = sum;
  }
}

/// out = A S; blocks hold about equal numbers of nonzeros, as a few rows of X^T hold most of them.
template <class Sparse, class From, class To>
void multiply_blocks(const Sparse& A, const From& S, To& out, int threads) {
  constexpr Index nonzeros_per_block = 8192;
  std::vector<Index> begin{0};
  for (Index i = 0; i < A.rows(); ++i) {
    const Index first = A.outerIndexPtr()[begin.back()];
    if (A.outerIndexPtr()[i + 1] - first >= nonzeros_per_block || i + 1 == A.rows()) begin.push_back(i + 1);
  }
  parallel_for(static_cast<Index>(begin.size()) - 1, {threads, nullptr}, [&](Index block) {
    const Index first = begin[static_cast<std::size_t>(block)];
    const Index count = begin[static_cast<std::size_t>(block) + 1] - first;
    out.middleRows(first, count).noalias() = A.middleRows(first, count) * S;
  });
}

template <class T>
Eigen::SparseMatrix<T, Eigen::RowMajor, std::int32_t> as_eigen(const Csr<T>& A) {
  using Sparse = Eigen::SparseMatrix<T, Eigen::RowMajor, std::int32_t>;
  return Eigen::Map<const Sparse>(A.rows, A.cols, A.nonzeros(), A.offsets.data(), A.columns.data(), A.values.data());
}

}  // namespace

template <class T>
void ColumnMajorProduct<T>::apply(const T* S, T* out, Index m, int threads) {
  scratch_.resize(static_cast<std::size_t>(threads), std::vector<T>(static_cast<std::size_t>(by_row_.cols)));
  const Index n = by_row_.rows;
  parallel_for(threads, {threads, nullptr}, [&](Index thread) {
    std::vector<T>& features = scratch_[static_cast<std::size_t>(thread)];
    for (Index column = thread; column < m; column += threads) {
      multiply_vector(by_feature_, S + column * n, features.data());
      multiply_vector(by_row_, features.data(), out + column * n);
    }
  });
}

template <class T>
EigenProduct<T>::EigenProduct(const Csr<double>& X)
    : by_row_(as_eigen(convert<T>(X))), by_feature_(as_eigen(transposed(convert<T>(X)))) {}

template <class T>
void EigenProduct<T>::apply(const T* S, T* out, Index m, int threads) {
  features_.resize(by_feature_.rows(), m);
  const Eigen::Map<const Dense> from(S, by_row_.rows(), m);
  Eigen::Map<Dense> to(out, by_row_.rows(), m);
  multiply_blocks(by_feature_, from, features_, threads);
  multiply_blocks(by_row_, features_, to, threads);
}

template class ColumnMajorProduct<float>;
template class ColumnMajorProduct<double>;
template class EigenProduct<float>;
template class EigenProduct<double>;

}  // namespace taxolearn::bench
