#include "taxolearn/operators/tiled.hpp"

#include <algorithm>
#include <utility>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/base/product.hpp"
#include "taxolearn/operators/subset.hpp"

namespace taxolearn {
namespace {

constexpr Index rows_per_cross = 64;     // of the new inputs, against all rows: some milliseconds
constexpr Index gradient_tile = 128;     // its weights in double precision fit the second cache
constexpr Index tiles_per_gradient = 8;  // share one partial sum

/// Memory of this thread for one tile at a time.
template <class T>
DenseView<T> scratch(Index rows, Index cols) {
  static thread_local Buffer<T> memory;
  memory.resize(static_cast<std::size_t>(rows * cols));
  return {memory.data(), rows, cols};
}

}  // namespace

template <class T>
Tiled<T>::Tiled(std::shared_ptr<const Kernel> kernel, const InputView& X, const Execution& execution)
    : Tiled(std::move(kernel), InputRows{X, {}}, execution) {}

template <class T>
Tiled<T>::Tiled(std::shared_ptr<const Kernel> kernel, InputRows rows, const Execution& execution)
    : kernel_(std::move(kernel)),
      rows_(std::make_unique<const InputRows>(std::move(rows))),
      entries_(kernel_entries<T>(*kernel_, *rows_, *rows_, execution)) {}

template <class T>
void Tiled<T>::apply(DenseView<const T> S, DenseView<T> out, const T* shift, const Execution& execution) {
  require_shape("S", S, rows(), S.cols);
  require_shape("out", out, rows(), S.cols);
  const Blocks blocks(rows(), symmetric_tile(sizeof(T)));
  product_.run(
      [&](Index I, Index J) {
        const DenseView<T> tile = scratch<T>(blocks.length(I), blocks.length(J));
        entries_->block(blocks.first(I), blocks.first(J), tile);
        return DenseView<const T>(tile);
      },
      S, out, shift, execution);
}

template <class T>
void Tiled<T>::apply_cross(const InputView& Xnew, DenseView<const T> S, DenseView<T> out, const Execution& execution) {
  require(input_features(Xnew) == input_features(rows_->X), "Xnew has ", input_features(Xnew), " features, expected ",
          input_features(rows_->X));
  require_shape("S", S, rows(), S.cols);
  require_shape("out", out, input_rows(Xnew), S.cols);
  const InputRows fresh{Xnew, {}};
  const auto entries = kernel_entries<T>(*kernel_, fresh, *rows_, execution);
  const Blocks blocks(out.rows, rows_per_cross);
  const Blocks columns(rows(), symmetric_tile(sizeof(T)));
  parallel_for(blocks.number(), execution, [&](Index I) {
    const DenseView<T> result = row_block(out, blocks.first(I), blocks.length(I));
    clear(result);
    for (Index J = 0; J < columns.number(); ++J) {
      const DenseView<T> tile = scratch<T>(blocks.length(I), columns.length(J));
      entries->block(blocks.first(I), columns.first(J), tile);
      add_product(Product::AB, tile, row_block(S, columns.first(J), columns.length(J)), result);
    }
  });
}

template <class T>
void Tiled<T>::bilinear_grad(DenseView<const T> E, DenseView<const T> F, double* gradient, const Execution& execution) {
  require_shape("E", E, rows(), E.cols);
  require_shape("F", F, rows(), E.cols);
  const Blocks blocks(rows(), gradient_tile);
  const Blocks tasks(blocks.number() * (blocks.number() + 1) / 2, tiles_per_gradient);
  Matrix<double> parts(tasks.number(), parameters());
  parallel_for(tasks.number(), execution, [&](Index task) {
    Buffer<double> left, right;
    const auto of = [&](const DenseView<const T>& A, Index block, Buffer<double>& memory) {
      return as_double(row_block(A, blocks.first(block), blocks.length(block)), memory);
    };
    for (Index t = tasks.first(task); t < tasks.first(task) + tasks.length(task); ++t) {
      Index I = 0;
      Index J = t;
      while (J > I) J -= ++I;
      const DenseView<double> Q = scratch<double>(blocks.length(I), blocks.length(J));
      set_product(Product::ABt, of(E, I, left), of(F, J, right), Q);
      if (I != J) add_product(Product::ABt, of(F, I, left), of(E, J, right), Q);
      entries_->gradient(blocks.first(I), blocks.first(J), Q, parts.row(task));
    }
  });
  std::fill_n(gradient, parameters(), 0.0);
  for (Index task = 0; task < tasks.number(); ++task) {
    for (Index k = 0; k < parameters(); ++k) gradient[k] += parts.row(task)[k];
  }
}

template <class T>
std::unique_ptr<Operator<T>> Tiled<T>::subset(const std::vector<Index>& rows, const Execution& execution) {
  return std::make_unique<Tiled>(kernel_, subset_of(*rows_, rows), execution);
}

template class Tiled<float>;
template class Tiled<double>;

}  // namespace taxolearn
