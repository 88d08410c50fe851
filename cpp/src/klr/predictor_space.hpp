// Shared by the sources of the two search spaces.
#pragma once

#include <Eigen/Core>
#include <algorithm>

#include "taxolearn/base/stopwatch.hpp"
#include "taxolearn/base/vector.hpp"
#include "taxolearn/klr/space.hpp"

namespace taxolearn {

using Array = Eigen::Map<Eigen::ArrayXd>;
template <class T>
using ConstArray = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;

/// Whole rows that together fill a block of vector work.
inline Blocks row_blocks(Index rows, Index classes) {
  return Blocks(rows, std::max<Index>(1, vector_block / std::max<Index>(classes, 1)));
}

template <class T>
template <class Body>
LinePoint PredictorSpace<T>::residuals(const Body& body) const {
  const Index classes = u_.cols();
  return parallel_sum<LinePoint>(row_blocks(u_.rows(), classes), execution_, [&](Index first, Index count) {
    thread_local Buffer<double> block;
    const Index size = count * classes;
    block.assign(u_.row(first), u_.row(first) + size);
    LinePoint sums;
    sums.value = problem_.likelihood->residual(first, count, block.data());
    sums.slope = body(first * classes, size, block.data());
    return sums;
  });
}

/// out = sum_k coefficients[k] vectors[k] over one block, in double precision.
template <class T>
void combine_block(const std::vector<double>& coefficients, const std::vector<Buffer<T>>& vectors, Index first,
                   Index count, double* out) {
  Array sum(out, count);
  sum.setZero();
  for (std::size_t k = 0; k < coefficients.size(); ++k) {
    if (coefficients[k] == 0.0) continue;
    sum += coefficients[k] * ConstArray<T>(vectors[k].data() + first, count).template cast<double>();
  }
}

/// Inner products of one vector with each of several, read in one pass.
template <class T>
std::vector<double> inner_products(const T* vector, const std::vector<Buffer<T>>& others, const std::vector<int>& which,
                                   Index size, const Execution& execution) {
  const Blocks blocks(size, vector_block);
  Matrix<double> parts(blocks.number(), static_cast<Index>(which.size()));
  parallel_for(blocks.number(), execution, [&](Index block) {
    const Index first = blocks.first(block);
    const Index count = blocks.length(block);
    thread_local Buffer<double> mine;
    mine.resize(static_cast<std::size_t>(count));
    Array(mine.data(), count) = ConstArray<T>(vector + first, count).template cast<double>();
    for (std::size_t k = 0; k < which.size(); ++k) {
      const T* other = others[static_cast<std::size_t>(which[k])].data() + first;
      parts.row(block)[k] = (Array(mine.data(), count) * ConstArray<T>(other, count).template cast<double>()).sum();
    }
  });
  std::vector<double> sums(which.size(), 0.0);
  for (Index block = 0; block < blocks.number(); ++block) {
    for (std::size_t k = 0; k < which.size(); ++k) sums[k] += parts.row(block)[k];
  }
  return sums;
}

}  // namespace taxolearn
