#include "taxolearn/base/vector.hpp"

#include <Eigen/Core>

namespace taxolearn {
namespace {

template <class T>
using ConstArray = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;

}  // namespace

template <class A, class B>
double dot(const A* a, const B* b, Index size, const Execution& execution) {
  return parallel_sum<double>(Blocks(size, vector_block), execution, [&](Index first, Index count) {
    return (ConstArray<A>(a + first, count).template cast<double>() *
            ConstArray<B>(b + first, count).template cast<double>())
        .sum();
  });
}

template <class X>
void axpy(double a, const X* x, double* y, Index size, const Execution& execution) {
  const Blocks blocks(size, vector_block);
  parallel_for(blocks.number(), execution, [&](Index block) {
    const Index first = blocks.first(block);
    const Index count = blocks.length(block);
    Eigen::Map<Eigen::ArrayXd>(y + first, count) += a * ConstArray<X>(x + first, count).template cast<double>();
  });
}

template <class T>
void column_sums(DenseView<const T> S, double* out, const Execution& execution) {
  const Blocks blocks(S.rows, std::max<Index>(64, 8 * vector_block / std::max<Index>(S.cols, 1)));
  Matrix<double> parts(blocks.number(), S.cols);
  parallel_for(blocks.number(), execution, [&](Index block) {
    Eigen::Map<Eigen::ArrayXd> part(parts.row(block), S.cols);
    for (Index i = blocks.first(block); i < blocks.first(block) + blocks.length(block); ++i) {
      part += ConstArray<T>(S.row(i), S.cols).template cast<double>();
    }
  });
  Eigen::Map<Eigen::ArrayXd> sums(out, S.cols);
  sums.setZero();
  for (Index block = 0; block < blocks.number(); ++block) sums += ConstArray<double>(parts.row(block), S.cols);
}

template double dot(const float*, const float*, Index, const Execution&);
template double dot(const double*, const double*, Index, const Execution&);
template double dot(const double*, const float*, Index, const Execution&);
template void axpy(double, const float*, double*, Index, const Execution&);
template void axpy(double, const double*, double*, Index, const Execution&);
template void column_sums(DenseView<const float>, double*, const Execution&);
template void column_sums(DenseView<const double>, double*, const Execution&);

}  // namespace taxolearn
