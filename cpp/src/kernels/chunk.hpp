// Pieces of rows that covariance functions work on.
#pragma once

#include <Eigen/Core>
#include <algorithm>

#include "taxolearn/base/matrix.hpp"

namespace taxolearn {

/// A piece of a row of a size the compiler knows: a few vector registers. Every entry goes through the same
/// instructions wherever it stands, so equal inputs give equal bits.
template <class T>
using Chunk = Eigen::Array<T, 256 / sizeof(T), 1>;

/// row = map(row), chunk by chunk; map(chunk, first index) changes the chunk. The rest is filled up with zeros.
template <class T, class Map>
void map_chunks(T* row, Index count, const Map& map) {
  constexpr Index size = Chunk<T>::SizeAtCompileTime;
  Index k = 0;
  for (; k + size <= count; k += size) {
    Chunk<T> chunk = Eigen::Map<const Chunk<T>>(row + k);
    map(chunk, k);
    Eigen::Map<Chunk<T>>(row + k) = chunk;
  }
  if (k < count) {
    Chunk<T> chunk = Chunk<T>::Zero();
    std::copy(row + k, row + count, chunk.data());
    map(chunk, k);
    std::copy(chunk.data(), chunk.data() + (count - k), row + k);
  }
}

}  // namespace taxolearn
