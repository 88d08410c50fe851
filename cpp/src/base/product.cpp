#include "taxolearn/base/product.hpp"

#include <Eigen/Core>
#include <algorithm>

#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/base/packets.hpp"
#include "taxolearn/base/parallel.hpp"

namespace taxolearn {
namespace {

// Rows and packets of the result that the innermost loop sums up in registers.
constexpr int rows_at_once = many_registers ? 6 : 4;
constexpr int packets_at_once = many_registers ? 4 : 3;
constexpr Index depth_at_once = 128;  // a panel of B of this depth stays in the first or second cache

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
auto as_eigen(const DenseView<const T>& A) {
  return Eigen::Map<const RowMajor<T>, Eigen::Unaligned, Eigen::OuterStride<>>(A.data, A.rows, A.cols,
                                                                               Eigen::OuterStride<>(A.stride));
}

template <class T>
void add_by_eigen(Product form, const DenseView<const T>& A, const DenseView<const T>& B, const DenseView<T>& out,
                  T scale) {
  Eigen::Map<RowMajor<T>, Eigen::Unaligned, Eigen::OuterStride<>> result(out.data, out.rows, out.cols,
                                                                         Eigen::OuterStride<>(out.stride));
  switch (form) {
    case Product::AB:
      result.noalias() += scale * (as_eigen(A) * as_eigen(B));
      break;
    case Product::AtB:
      result.noalias() += scale * (as_eigen(A).transpose() * as_eigen(B));
      break;
    case Product::ABt:
      result.noalias() += scale * (as_eigen(A) * as_eigen(B).transpose());
      break;
  }
}

/// Rows of a matrix or of its transpose: element (i, k) is at data[i * row + k * column].
template <class T>
struct Factor {
  const T* data;
  Index row;
  Index column;

  Factor at(Index i, Index k) const { return {data + i * row + k * column, row, column}; }
};

/// Some packets of columns side by side. The last begins at `last`, where it may overlap the one before, so that rows
/// need not be a multiple of the packet.
template <class T>
struct Columns {
  Index packets;
  Index last;

  Index first(Index p) const { return p + 1 == packets ? last : p * lanes<T>; }
};

/// A product and what happens to it: out = scale A B, or out += it.
template <class T>
struct Update {
  T scale;
  bool adds;
};

/// out = scale A panel, or added to it, for a few rows.
template <class T, int Rows, int Packets>
void multiply_tile(const Factor<T>& A, const T* panel, Index depth, const Columns<T>& columns, T* out, Index stride,
                   const Update<T>& update) {
  using P = Packet<T>;
  P sums[Rows][Packets];
  unrolled<Rows>([&](auto r) { unrolled<Packets>([&](auto p) { sums[r][p] = pset1<P>(T(0)); }); });
  for (Index k = 0; k < depth; ++k, panel += Packets * lanes<T>) {
    P row[Packets];
    unrolled<Packets>([&](auto p) { row[p] = pload<P>(panel + p * lanes<T>); });
    unrolled<Rows>([&](auto r) {
      const P factor = pset1<P>(A.data[r * A.row + k * A.column]);
      unrolled<Packets>([&](auto p) { sums[r][p] = pmadd(factor, row[p], sums[r][p]); });
    });
  }
  const P factor = pset1<P>(update.scale);
  unrolled<Rows>([&](auto r) {
    T* const to = out + r * stride;
    // All are read before the first is written: what overlaps is added once.
    unrolled<Packets>([&](auto p) {
      const P before = update.adds ? ploadu<P>(to + columns.first(p)) : pset1<P>(T(0));
      sums[r][p] = pmadd(factor, sums[r][p], before);
    });
    unrolled<Packets>([&](auto p) { pstoreu(to + columns.first(p), sums[r][p]); });
  });
}

template <class T, int Packets>
void multiply_panel(const Factor<T>& A, const T* panel, Index depth, const Columns<T>& columns, const DenseView<T>& out,
                    const Update<T>& update) {
  Index i = 0;
  const auto multiply_rows = [&](auto rows) {
    for (; i + rows <= out.rows; i += rows)
      multiply_tile<T, rows(), Packets>(A.at(i, 0), panel, depth, columns, out.row(i), out.stride, update);
  };
  multiply_rows(std::integral_constant<int, rows_at_once>{});
  multiply_rows(std::integral_constant<int, 2>{});
  multiply_rows(std::integral_constant<int, 1>{});
}

template <class T>
void multiply_panels(const Factor<T>& A, const DenseView<const T>& B, const DenseView<T>& out, Update<T> update) {
  thread_local Buffer<T> panel;
  panel.resize(static_cast<std::size_t>(depth_at_once * packets_at_once * lanes<T>));
  const Index packets = (out.cols + lanes<T> - 1) / lanes<T>;
  const Index panels = (packets + packets_at_once - 1) / packets_at_once;
  const Blocks depths(B.rows, depth_at_once);
  for (Index d = 0; d < depths.number(); ++d) {
    for (Index k = 0; k < panels; ++k) {
      // Packets are shared out evenly. So a panel has more than one if there are several, and overlaps stay within it.
      const Index first = packets * k / panels * lanes<T>;
      const Index count = packets * (k + 1) / panels - packets * k / panels;
      const Columns<T> columns{count, std::min((count - 1) * lanes<T>, out.cols - first - lanes<T>)};
      for (Index i = 0; i < depths.length(d); ++i) {
        for (Index p = 0; p < count; ++p) {
          const T* const from = B.row(depths.first(d) + i) + first + columns.first(p);
          std::copy(from, from + lanes<T>, panel.data() + (i * count + p) * lanes<T>);
        }
      }
      unrolled<packets_at_once>([&](auto p) {
        if (count != p + 1) return;
        multiply_panel<T, p + 1>(A.at(0, depths.first(d)), panel.data(), depths.length(d), columns,
                                 block(out, 0, out.rows, first, out.cols - first), update);
      });
    }
    update.adds = true;
  }
}

template <class T>
void multiply(Product form, const DenseView<const T>& A, const DenseView<const T>& B, const DenseView<T>& out,
              const Update<T>& update) {
  const bool in_panels = form != Product::ABt && out.cols >= lanes<T> && out.rows >= rows_at_once;
  if (!update.adds && (!in_panels || B.rows == 0)) clear(out);
  if (!in_panels) {
    add_by_eigen(form, A, B, out, update.scale);
  } else if (form == Product::AB) {
    multiply_panels<T>({A.data, A.stride, 1}, B, out, update);
  } else {
    multiply_panels<T>({A.data, 1, A.stride}, B, out, update);
  }
}

}  // namespace

void add_product(Product form, DenseView<const float> A, DenseView<const float> B, DenseView<float> out, float scale) {
  multiply<float>(form, A, B, out, {scale, true});
}

void add_product(Product form, DenseView<const double> A, DenseView<const double> B, DenseView<double> out,
                 double scale) {
  multiply<double>(form, A, B, out, {scale, true});
}

void set_product(Product form, DenseView<const float> A, DenseView<const float> B, DenseView<float> out, float scale) {
  multiply<float>(form, A, B, out, {scale, false});
}

void set_product(Product form, DenseView<const double> A, DenseView<const double> B, DenseView<double> out,
                 double scale) {
  multiply<double>(form, A, B, out, {scale, false});
}

}  // namespace taxolearn
