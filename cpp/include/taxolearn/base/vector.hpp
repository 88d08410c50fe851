// Long vectors: sums and updates in parallel, the same for any number of threads.
#pragma once

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"

namespace taxolearn {

/// Elements per block of flat vector work: three or four such blocks fit the first cache.
constexpr Index vector_block = 2048;

/// a . b in double precision.
template <class A, class B>
double dot(const A* a, const B* b, Index size, const Execution& execution);

/// y += a x.
template <class X>
void axpy(double a, const X* x, double* y, Index size, const Execution& execution);

/// out[c] = sum_i S[i, c].
template <class T>
void column_sums(DenseView<const T> S, double* out, const Execution& execution);

}  // namespace taxolearn
