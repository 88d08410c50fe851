#include "taxolearn/operators/symmetric_product.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/packets.hpp"

namespace taxolearn {
namespace {

// Rows of a tile and columns of S that the innermost loop works on. Sums, factors and rows of the tile stay in
// registers: 2 rows columns + rows + 2.
constexpr int rows_at_once = 4;
constexpr int columns_at_once = many_registers ? 3 : 1;
constexpr int rows_of_one = many_registers ? 8 : 4;  // with a single column
constexpr Index columns_per_sweep = 12;              // these of S and of the result stay in the first cache
constexpr Index columns_per_copy = 16;
constexpr Index corner = 16;

/// Distance of two columns in a transposed block; no power of two, for the sake of the cache.
template <class T>
constexpr Index column_stride = symmetric_tile(sizeof(T)) + 64 / static_cast<Index>(sizeof(T));

/// Some columns of S and of the result within a block of rows, one after the other.
template <class T>
struct Panel {
  const T* in = nullptr;
  T* out = nullptr;

  Panel at(Index column, Index row) const {
    const Index offset = column * column_stride<T> + row;
    return {in + offset, out + offset};
  }
};

/// left.out += tile right.in and, if Both, right.out += tile^T left.in, for Rows rows and Columns columns. The width is
/// a multiple of the lanes.
template <class T, int Rows, int Columns, bool Both, bool Ahead>
void multiply_strip(const T* tile, Index stride, Index width, Panel<T> left, Panel<T> right) {
  using P = Packet<T>;
  constexpr Index step = column_stride<T>;
  P sums[Rows][Columns];
  P factors[Rows][Columns];
  unrolled<Rows>([&](auto r) {
    unrolled<Columns>([&](auto c) {
      sums[r][c] = pset1<P>(T(0));
      factors[r][c] = pset1<P>(left.in[c * step + r]);
    });
  });
  for (Index j = 0; j < width; j += lanes<T>) {
    P rows[Rows];
    unrolled<Rows>([&](auto r) {
      if constexpr (Ahead) prefetch(tile + (r + Rows) * stride + j);
      rows[r] = ploadu<P>(tile + r * stride + j);
    });
    unrolled<Columns>([&](auto c) {
      const P value = ploadu<P>(right.in + c * step + j);
      unrolled<Rows>([&](auto r) { sums[r][c] = pmadd(rows[r], value, sums[r][c]); });
      if constexpr (Both) {
        T* const target = right.out + c * step + j;
        P result = ploadu<P>(target);
        unrolled<Rows>([&](auto r) { result = pmadd(rows[r], factors[r][c], result); });
        pstoreu(target, result);
      }
    });
  }
  unrolled<Rows>([&](auto r) { unrolled<Columns>([&](auto c) { left.out[c * step + r] += predux(sums[r][c]); }); });
}

/// The same for any number of columns, up to AtOnce at a time. The first of them asks for the next rows of a tile; the
/// rows of a corner and the last ones of a tile are at hand.
template <class T, int Rows, int AtOnce, bool Both>
void multiply_columns(const T* tile, Index stride, Index width, Index columns, const Panel<T>& left,
                      const Panel<T>& right) {
  using Ahead = std::bool_constant<Both && (Rows > 1)>;
  const auto strip = [&](auto count, auto ahead, Index first) {
    multiply_strip<T, Rows, count(), Both, ahead()>(tile, stride, width, left.at(first, 0), right.at(first, 0));
  };
  Index c = columns % AtOnce;
  if (c == 0) c = AtOnce;
  unrolled<AtOnce>([&](auto k) {
    if (c == k + 1) strip(std::integral_constant<int, k() + 1>{}, Ahead{}, 0);
  });
  for (; c < columns; c += AtOnce) strip(std::integral_constant<int, AtOnce>{}, std::false_type{}, c);
}

/// The same for all rows of a tile and all columns of S.
template <class T, int Rows, int AtOnce, bool Both>
void multiply_rows(const DenseView<const T>& tile, Index m, const Panel<T>& left, const Panel<T>& right) {
  for (Index c = 0; c < m; c += columns_per_sweep) {
    const Index columns = std::min(columns_per_sweep, m - c);
    Index r = 0;
    for (; r + Rows <= tile.rows; r += Rows) {
      multiply_columns<T, Rows, AtOnce, Both>(tile.row(r), tile.stride, tile.cols, columns, left.at(c, r),
                                              right.at(c, 0));
    }
    for (; r < tile.rows; ++r) {
      multiply_columns<T, 1, AtOnce, Both>(tile.row(r), tile.stride, tile.cols, columns, left.at(c, r), right.at(c, 0));
    }
  }
}

template <class T, bool Both>
void multiply_tile(const DenseView<const T>& tile, Index m, const Panel<T>& left, const Panel<T>& right) {
  if (m == 1) {
    multiply_rows<T, rows_of_one, 1, Both>(tile, m, left, right);
  } else {
    multiply_rows<T, rows_at_once, columns_at_once, Both>(tile, m, left, right);
  }
}

template <class T>
Index whole_packets(Index count) {
  return (count + lanes<T> - 1) / lanes<T> * lanes<T>;
}

/// out += tile in, from the lower triangle of a diagonal tile: two-way left of the corners on the diagonal, which are
/// unfolded.
template <class T>
void multiply_diagonal(const DenseView<const T>& tile, Index m, const Panel<T>& panel) {
  static_assert(corner % lanes<T> == 0);
  alignas(64) T memory[corner * corner];
  for (Index first = 0; first < tile.rows; first += corner) {
    const Index rows = std::min(corner, tile.rows - first);
    const Panel<T> own = panel.at(0, first);
    if (first > 0) multiply_tile<T, true>(DenseView<const T>(tile.row(first), rows, first, tile.stride), m, own, panel);
    const DenseView<T> full(memory, rows, whole_packets<T>(rows), corner);
    std::fill_n(memory, corner * corner, T(0));
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j <= i; ++j) full.row(i)[j] = full.row(j)[i] = tile.row(first + i)[first + j];
    }
    multiply_tile<T, false>(full, m, own, own);
  }
}

/// Who meets whom: round r, pair k of a tournament of an even number of players (the circle method).
std::pair<Index, Index> opponents(Index players, Index round, Index pair) {
  if (pair == 0) return {players - 1, round};
  const Index a = (round + pair) % (players - 1);
  const Index b = (round - pair + players - 1) % (players - 1);
  return {std::max(a, b), std::min(a, b)};
}

/// Rows of S, transposed, and a result of zero.
template <class T>
void pack_block(const DenseView<const T>& S, const Blocks& blocks, Index I, T* to, T* result) {
  const Index rows = blocks.length(I);
  for (Index first = 0; first < S.cols; first += columns_per_copy) {
    const Index last = std::min(first + columns_per_copy, S.cols);
    for (Index i = 0; i < rows; ++i) {
      const T* const from = S.row(blocks.first(I) + i);
      for (Index c = first; c < last; ++c) to[c * column_stride<T> + i] = from[c];
    }
  }
  for (Index c = 0; c < S.cols; ++c) {
    std::fill(to + c * column_stride<T> + rows, to + c * column_stride<T> + whole_packets<T>(rows), T(0));
  }
  std::fill_n(result, S.cols * column_stride<T>, T(0));
}

/// The result where it belongs.
template <class T>
void unpack_block(const T* from, const Blocks& blocks, Index I, const T* shift, const DenseView<T>& out) {
  for (Index first = 0; first < out.cols; first += columns_per_copy) {
    const Index last = std::min(first + columns_per_copy, out.cols);
    for (Index i = 0; i < blocks.length(I); ++i) {
      T* const to = out.row(blocks.first(I) + i);
      for (Index c = first; c < last; ++c) {
        to[c] = from[c * column_stride<T> + i] + (shift != nullptr ? shift[c] : T(0));
      }
    }
  }
}

}  // namespace

template <class T>
void SymmetricProduct<T>::run(const TileSource<T>& tiles, DenseView<const T> S, DenseView<T> out, const T* shift,
                              const Execution& execution) {
  require_shape("out", out, S.rows, S.cols);
  const Blocks blocks(S.rows, symmetric_tile(sizeof(T)));
  const Index count = blocks.number();
  const Index m = S.cols;
  const Index size = m * column_stride<T>;
  input_.resize(static_cast<std::size_t>(count * size));
  output_.resize(input_.size());
  const auto panel = [&](Index block) { return Panel<T>{input_.data() + block * size, output_.data() + block * size}; };

  // No barriers between the rounds: a tile waits for the tiles before it in its two blocks. Tasks are begun in their
  // order, so whoever waits does so for a task that is running.
  const Index absent = count % 2;  // in a tournament of an odd number, block r pauses in round r
  const Index players = count + absent;
  const Index pairs = players / 2 - absent;
  const Index rounds = players > 0 ? players - 1 : 0;
  std::vector<std::atomic<Index>> finished(static_cast<std::size_t>(count));  // tasks of each block
  const auto wait = [&](Index block, Index tasks) {
    while (finished[static_cast<std::size_t>(block)].load(std::memory_order_acquire) < tasks) std::this_thread::yield();
  };
  const auto finish = [&](Index block) {
    finished[static_cast<std::size_t>(block)].fetch_add(1, std::memory_order_release);
  };
  std::atomic<Index> next{0};
  parallel_for(2 * count + rounds * pairs, execution, [&](Index) {
    Index task = next.fetch_add(1);
    if (task < count) {
      pack_block(S, blocks, task, input_.data() + task * size, output_.data() + task * size);
      multiply_diagonal(tiles(task, task), m, panel(task));
      finish(task);
      return;
    }
    task -= count;
    if (task < rounds * pairs) {
      const Index round = task / pairs;
      const auto [I, J] = opponents(players, round, task % pairs + absent);
      const DenseView<const T> tile = tiles(I, J);
      wait(I, 1 + round - (I < round ? absent : 0));
      wait(J, 1 + round - (J < round ? absent : 0));
      multiply_tile<T, true>(tile, m, panel(I), panel(J));
      finish(I);
      finish(J);
      return;
    }
    task -= rounds * pairs;
    wait(task, count);
    unpack_block(output_.data() + task * size, blocks, task, shift, out);
  });
}

template class SymmetricProduct<float>;
template class SymmetricProduct<double>;

}  // namespace taxolearn
