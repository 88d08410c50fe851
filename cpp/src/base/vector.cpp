#include "taxolearn/base/vector.hpp"

#include <algorithm>

namespace taxolearn {
template <class A, class B>
double dot(const A* a, const B* b, Index size, const Execution& execution) {
  return parallel_sum<double>(Blocks(size, vector_block), execution,
                              [&](Index first, Index count) { return dot_block(a + first, b + first, count); });
}

template <class X>
void axpy(double a, const X* x, double* y, Index size, const Execution& execution) {
  const Blocks blocks(size, vector_block);
  parallel_for(blocks.number(), execution, [&](Index block) {
    axpy_block(a, x + blocks.first(block), y + blocks.first(block), blocks.length(block));
  });
}

template <class From, class To>
void convert(const From* from, To* to, Index size, const Execution& execution) {
  const Blocks blocks(size, vector_block);
  parallel_for(blocks.number(), execution, [&](Index block) {
    convert_block(from + blocks.first(block), to + blocks.first(block), blocks.length(block));
  });
}

template <class T>
void column_sums(DenseView<const T> S, double* out, const Execution& execution) {
  const Blocks blocks(S.rows, std::max<Index>(64, 8 * vector_block / std::max<Index>(S.cols, 1)));
  Matrix<double> parts(blocks.number(), S.cols);
  parallel_for(blocks.number(), execution, [&](Index block) {
    for (Index i = blocks.first(block); i < blocks.first(block) + blocks.length(block); ++i) {
      axpy_block(1.0, S.row(i), parts.row(block), S.cols);
    }
  });
  std::fill(out, out + S.cols, 0.0);
  for (Index block = 0; block < blocks.number(); ++block) axpy_block(1.0, parts.row(block), out, S.cols);
}

template double dot(const float*, const float*, Index, const Execution&);
template double dot(const double*, const double*, Index, const Execution&);
template double dot(const double*, const float*, Index, const Execution&);
template void axpy(double, const float*, double*, Index, const Execution&);
template void axpy(double, const double*, double*, Index, const Execution&);
template void convert(const float*, double*, Index, const Execution&);
template void convert(const double*, float*, Index, const Execution&);
template void convert(const double*, double*, Index, const Execution&);
template void column_sums(DenseView<const float>, double*, const Execution&);
template void column_sums(DenseView<const double>, double*, const Execution&);

}  // namespace taxolearn
