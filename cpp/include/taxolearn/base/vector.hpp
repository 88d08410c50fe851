// Long vectors: sums and updates in parallel, the same for any number of threads.
#pragma once

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"

namespace taxolearn {

/// Elements per block of flat vector work: three or four such blocks fit the first cache.
constexpr Index vector_block = 2048;

// Serial loops over one block. Plain loops, because Eigen does not vectorise sums over a change of precision.

/// a . b in double precision.
template <class A, class B>
double dot_block(const A* a, const B* b, Index count) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (Index k = 0; k < count; ++k) sum += static_cast<double>(a[k]) * static_cast<double>(b[k]);
  return sum;
}

/// y += a x.
template <class X>
void axpy_block(double a, const X* x, double* y, Index count) {
#pragma omp simd
  for (Index k = 0; k < count; ++k) y[k] += a * static_cast<double>(x[k]);
}

/// to = from in another precision.
template <class From, class To>
void convert_block(const From* from, To* to, Index count) {
#pragma omp simd
  for (Index k = 0; k < count; ++k) to[k] = static_cast<To>(from[k]);
}

// The same in parallel over long vectors.

template <class A, class B>
double dot(const A* a, const B* b, Index size, const Execution& execution);

template <class X>
void axpy(double a, const X* x, double* y, Index size, const Execution& execution);

template <class From, class To>
void convert(const From* from, To* to, Index size, const Execution& execution);

/// out[c] = sum_i S[i, c].
template <class T>
void column_sums(DenseView<const T> S, double* out, const Execution& execution);

}  // namespace taxolearn
