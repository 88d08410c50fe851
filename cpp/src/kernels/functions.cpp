#include "taxolearn/kernels/functions.hpp"

#include <algorithm>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/base/vector.hpp"

namespace taxolearn {
namespace {

constexpr Index tile = 128;

}  // namespace

template <class T>
void kernel_matrix(const Kernel& kernel, const InputRows& left, const InputRows& right, DenseView<T> out,
                   const Execution& execution) {
  require_shape("out", out, left.count(), right.count());
  const auto entries = kernel_entries<T>(kernel, left, right, execution);
  const bool same = &left == &right;
  const Blocks rows(out.rows, tile), columns(out.cols, tile);
  parallel_for(rows.number() * columns.number(), execution, [&](Index block) {
    const Index a = block / columns.number(), b = block % columns.number();
    if (same && a < b) return;
    const Index i = rows.first(a), j = columns.first(b), m = rows.length(a), n = columns.length(b);
    const DenseView<T> here(out.row(i) + j, m, n, out.stride);
    entries->block(i, j, here);
    if (same && a > b) copy_transposed(here, DenseView<T>(out.row(j) + i, n, m, out.stride));
  });
}

void kernel_gradient(const Kernel& kernel, const InputRows& left, const InputRows& right, DenseView<const double> Q,
                     double* gradient, const Execution& execution) {
  require_shape("Q", Q, left.count(), right.count());
  const auto entries = kernel_entries<double>(kernel, left, right, execution);
  const Blocks rows(Q.rows, tile), columns(Q.cols, tile);
  Matrix<double> parts(rows.number(), kernel.parameters());
  parallel_for(rows.number(), execution, [&](Index a) {
    for (Index b = 0; b < columns.number(); ++b) {
      const Index i = rows.first(a), j = columns.first(b);
      entries->gradient(i, j, {Q.row(i) + j, rows.length(a), columns.length(b), Q.stride}, parts.row(a));
    }
  });
  std::fill(gradient, gradient + parts.cols(), 0.0);
  for (Index a = 0; a < parts.rows(); ++a) axpy_block(1.0, parts.row(a), gradient, parts.cols());
}

template void kernel_matrix(const Kernel&, const InputRows&, const InputRows&, DenseView<float>, const Execution&);
template void kernel_matrix(const Kernel&, const InputRows&, const InputRows&, DenseView<double>, const Execution&);

}  // namespace taxolearn
