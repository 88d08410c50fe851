// Products with a symmetric matrix M (n x n) that comes in square tiles, each needed once and used twice: for I > J,
//   out_I += T S_J  and  out_J += T^T S_I,  with T = M[I, J].
// So a stored matrix takes half of the memory, and half of it has to be read; a matrix computed on the fly takes half
// of the work.
//
// The tiles are scheduled as a round-robin tournament of the row blocks: in a round every block meets at most one
// other. The tiles of a round run in parallel without conflicts, and every element of the result is added up in the
// same order on any number of threads.
//
// Flops 2 n^2 m, bytes n^2 / 2 sizeof(T). One core with AVX-512 that reads 10 to 12 GB/s from memory and runs the
// innermost loop from cache at 110 GFlop/s (57 in double precision), n = 7291, processor time, best of 5 to 15 runs on
// a busy machine, and how many times as fast as `multiply` of dense_linear.hpp with the full square:
//   float   m = 1: 12 GB/s, 1.5   6: 55 GFlop/s, 3.5   10: 60 GFlop/s, 2.5   100: 90 GFlop/s, 1.05
//   double  m = 1: 12 GB/s, 1.7   6: 27 GFlop/s, 2.8   10: 29 GFlop/s, 2.3   100: 41 GFlop/s, 0.97
// So one column goes at the speed of memory, six or ten at half of that of the loop, as both count, and a hundred at
// three quarters of it. n = 4435: up to 15 % more.
#pragma once

#include <functional>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"

namespace taxolearn {

/// Rows and columns of a tile by the size of its elements; at the lower and right border of M there is less.
constexpr Index symmetric_tile(std::size_t element) { return element <= sizeof(float) ? 256 : 192; }

/// Gives tile (I, J), I >= J, with symmetric_tile(sizeof(T)) columns; of a diagonal one only the lower triangle is
/// read. Must not throw. It is called from several threads, once per tile; the view has to hold until the same thread
/// asks for the next one.
template <class T>
using TileSource = std::function<DenseView<const T>(Index I, Index J)>;

/// The two-way product, with its workspace.
template <class T>
class SymmetricProduct {
 public:
  /// out = M S + 1 shift^T, with S and out (n x m); shift (length m) may be null. S and out must not overlap.
  void run(const TileSource<T>& tiles, DenseView<const T> S, DenseView<T> out, const T* shift,
           const Execution& execution);

 private:
  Buffer<T> input_;   ///< S, per block of rows transposed: m x tile
  Buffer<T> output_;  ///< the result in the same way
};

}  // namespace taxolearn
