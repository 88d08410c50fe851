#include "taxolearn/operators/packed_symmetric.hpp"

#ifdef __linux__
#include <sys/mman.h>
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/vector.hpp"

namespace taxolearn {
namespace {

constexpr Index rows_per_exchange = 16;
constexpr Index places_at_once = 64;

void prefetch([[maybe_unused]] const void* address) {
#ifdef __GNUC__
  __builtin_prefetch(address, 1);
#endif
}

/// Exchanges jump through all of the memory, products read it once: both cost less with fewer pages.
void ask_for_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::uintptr_t page = 4096;
  const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(memory) + page - 1) / page * page;
  const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

Index packed_elements(Index n, std::size_t element) {
  const Index tile = symmetric_tile(element);
  const Index full = n / tile;
  return full * (full + 1) / 2 * tile * tile + (n % tile > 0 ? (full + 1) * tile * (n % tile) : 0);
}

/// Row I and column J of tile t, counted row by row through the lower triangle.
std::pair<Index, Index> tile_place(Index t) {
  Index I = 0;
  while (t > I) t -= ++I;
  return {I, t};
}

/// Entries that are next to nothing become zero: with them, products would work on denormal numbers, which is several
/// times slower, and no sum in precision T would differ.
template <class From, class To>
void round_block(const From* from, To* to, Index count) {
  constexpr auto least = static_cast<From>(std::numeric_limits<To>::min()) * From(1 << 24);
#pragma omp simd
  for (Index k = 0; k < count; ++k) to[k] = std::abs(from[k]) < least ? To(0) : static_cast<To>(from[k]);
}

}  // namespace

double packed_symmetric_bytes(Index n, Index count, std::size_t element) {
  return static_cast<double>(packed_elements(n, element)) * static_cast<double>(count) * static_cast<double>(element);
}

template <class T>
PackedSymmetric<T>::PackedSymmetric(Index n, Index count)
    : count_(count), elements_(packed_elements(n, sizeof(T))), order_(static_cast<std::size_t>(n)), active_(n) {
  data_.reserve(static_cast<std::size_t>(count_ * elements_));
  ask_for_large_pages(data_.data(), data_.capacity() * sizeof(T));
  data_.resize(static_cast<std::size_t>(count_ * elements_));
  std::iota(order_.begin(), order_.end(), Index{0});
}

template <class T>
template <class Entry>
void PackedSymmetric<T>::fill(Index l, const KernelEntries<Entry>& entries, const Execution& execution) {
  require_whole();
  whole_ = false;
  const Blocks blocks(size(), tile);
  parallel_for(blocks.number() * (blocks.number() + 1) / 2, execution, [&](Index t) {
    const auto [I, J] = tile_place(t);
    const DenseView<T> out(matrix(l) + tile_offset(I, J), blocks.length(I), blocks.length(J), tile);
    if constexpr (std::is_same_v<Entry, T>) {
      entries.block(blocks.first(I), blocks.first(J), out);
    } else {
      static thread_local Buffer<Entry> memory;
      memory.resize(static_cast<std::size_t>(tile * tile));
      const DenseView<Entry> block(memory.data(), out.rows, out.cols);
      entries.block(blocks.first(I), blocks.first(J), block);
      for (Index i = 0; i < out.rows; ++i) round_block(block.row(i), out.row(i), out.cols);
    }
  });
  whole_ = true;
}

template <class T>
void PackedSymmetric<T>::multiply(Index l, DenseView<const T> S, DenseView<T> out, const T* shift,
                                  const Execution& execution) {
  require_whole();
  require_shape("S", S, active_, S.cols);
  require_shape("out", out, active_, S.cols);
  const Blocks blocks(active_, tile);
  const T* const from = matrix(l);
  product_.run(
      [&](Index I, Index J) {
        return DenseView<const T>(from + tile_offset(I, J), blocks.length(I), blocks.length(J), tile);
      },
      S, out, shift, execution);
}

template <class T>
std::vector<T> PackedSymmetric<T>::diagonal(Index l) const {
  std::vector<T> out(static_cast<std::size_t>(active_));
  for (Index i = 0; i < active_; ++i) out[static_cast<std::size_t>(i)] = at(l, i, i);
  return out;
}

template <class T>
void PackedSymmetric<T>::arrange(const std::vector<Index>& rows, const Execution& execution) {
  require_whole();
  if (std::equal(rows.begin(), rows.end(), order_.begin())) {
    active_ = static_cast<Index>(rows.size());
    return;
  }
  const Index n = size();
  const auto place_of = [](std::vector<Index>& v, Index i) -> Index& { return v[static_cast<std::size_t>(i)]; };
  std::vector<Index> place(order_.size());  // where each original row is now
  for (Index a = 0; a < n; ++a) place_of(place, place_of(order_, a)) = a;
  std::vector<Index> source(order_.size(), -1);  // the place that the row at each place comes from
  std::vector<char> taken(order_.size(), 0);
  const auto active = static_cast<Index>(rows.size());
  for (Index a = 0; a < active; ++a) {
    const Index from = place_of(place, rows[static_cast<std::size_t>(a)]);
    place_of(source, a) = from;
    taken[static_cast<std::size_t>(from)] = 1;
  }
  // Others stay where they are, or fill the places that active rows left.
  for (Index a = active; a < n; ++a) {
    if (taken[static_cast<std::size_t>(a)] == 0) place_of(source, a) = a;
  }
  Index a = active;
  for (Index from = 0; from < active; ++from) {
    if (taken[static_cast<std::size_t>(from)] != 0) continue;
    while (place_of(source, a) >= 0) ++a;
    place_of(source, a) = from;
  }
  permute(source, execution);
  active_ = active;
}

template <class T>
void PackedSymmetric<T>::restore(const Execution& execution) {
  std::vector<Index> all(order_.size());
  std::iota(all.begin(), all.end(), Index{0});
  arrange(all, execution);
}

/// M'[a, b] = M[source[a], source[b]] for all matrices. A cycle k -> k + 1 is the reflection k -> -k after which comes
/// the reflection k -> 1 - k: so two passes that exchange elements in pairs do it, each of them in parallel and in
/// place.
template <class T>
void PackedSymmetric<T>::permute(const std::vector<Index>& source, const Execution& execution) {
  std::vector<Index> first(source.size());
  std::vector<Index> second(source.size());
  std::vector<char> seen(source.size(), 0);
  std::vector<Index> cycle;
  for (std::size_t start = 0; start < source.size(); ++start) {
    if (seen[start] != 0) continue;
    cycle.clear();
    for (auto i = start; seen[i] == 0; i = static_cast<std::size_t>(source[i])) {
      seen[i] = 1;
      cycle.push_back(static_cast<Index>(i));
    }
    const std::size_t length = cycle.size();
    for (std::size_t k = 0; k < length; ++k) {
      first[static_cast<std::size_t>(cycle[k])] = cycle[(length + 1 - k) % length];
      second[static_cast<std::size_t>(cycle[k])] = cycle[(length - k) % length];
    }
  }
  whole_ = false;
  ++moves_;
  exchange(first, execution);
  exchange(second, execution);
  std::vector<Index> order(order_.size());
  for (std::size_t a = 0; a < order.size(); ++a) order[a] = order_[static_cast<std::size_t>(source[a])];
  order_ = std::move(order);
  whole_ = true;
}

/// Exchanges elements {a, b} and {partner[a], partner[b]}; partner is its own inverse. Half of the partners are a cache
/// miss, whatever the order: so their places are found some dozen at a time and fetched ahead.
template <class T>
void PackedSymmetric<T>::exchange(const std::vector<Index>& partner, const Execution& execution) {
  // offset(i, j) is row[i] + column[j], with other columns for the last row of tiles, which is shorter.
  const Index n = size();
  const Index last = (n - 1) / tile * tile;
  std::vector<Index> row(partner.size());
  std::vector<Index> columns(2 * partner.size());
  for (Index i = 0; i < n; ++i) {
    row[static_cast<std::size_t>(i)] = offset(i, 0);
    columns[static_cast<std::size_t>(i)] = i / tile * tile * tile + i % tile;
    columns[static_cast<std::size_t>(n + i)] = i / tile * tile * (n - last) + i % tile;
  }
  const auto columns_of = [&](Index i) { return columns.data() + (i >= last ? n : 0); };

  const Blocks blocks(n, rows_per_exchange);
  parallel_for(count_ * blocks.number(), execution, [&](Index task) {
    T* const data = matrix(task / blocks.number());
    const Index block = task % blocks.number();
    std::array<std::pair<Index, Index>, places_at_once> places;
    for (Index a = blocks.first(block); a < blocks.first(block) + blocks.length(block); ++a) {
      const Index pa = partner[static_cast<std::size_t>(a)];
      const Index own = row[static_cast<std::size_t>(a)];
      const Index* const own_columns = columns_of(a);
      for (Index first = 0; first <= a; first += places_at_once) {
        std::size_t found = 0;
        for (Index b = first; b < std::min(first + places_at_once, a + 1); ++b) {
          const Index pb = partner[static_cast<std::size_t>(b)];
          const Index i = std::max(pa, pb);
          const Index j = std::min(pa, pb);
          places[found] = {own + own_columns[b], row[static_cast<std::size_t>(i)] + columns_of(i)[j]};
          found += static_cast<std::size_t>((i > a) | ((i == a) & (j > b)));  // each pair once
        }
        for (std::size_t k = 0; k < found; ++k) prefetch(data + places[k].second);
        for (std::size_t k = 0; k < found; ++k) std::swap(data[places[k].first], data[places[k].second]);
      }
    }
  });
}

template <class T>
void PackedSymmetric<T>::require_whole() const {
  require(whole_, "the stored kernel matrices are not whole, as a change of them was interrupted: build them again");
}

#define TAXOLEARN_INSTANTIATE(T)     \
  template class PackedSymmetric<T>; \
  template void PackedSymmetric<T>::fill(Index, const KernelEntries<double>&, const Execution&);
TAXOLEARN_INSTANTIATE(float)
TAXOLEARN_INSTANTIATE(double)
#undef TAXOLEARN_INSTANTIATE
template void PackedSymmetric<float>::fill(Index, const KernelEntries<float>&, const Execution&);

}  // namespace taxolearn
