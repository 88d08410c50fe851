// Shared by the sources of the two search spaces.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <array>

#include "taxolearn/base/stopwatch.hpp"
#include "taxolearn/base/vector.hpp"
#include "taxolearn/fit/spaces.hpp"

namespace taxolearn {

using Array = Eigen::Map<Eigen::ArrayXd>;
template <class T>
using ConstArray = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;

/// Whole rows that together fill a block of vector work.
inline Blocks row_blocks(Index rows, Index classes) {
  return Blocks(rows, std::max<Index>(1, vector_block / std::max<Index>(classes, 1)));
}

/// body(first row, rows) over these blocks, in parallel.
template <class Body>
void for_row_blocks(Index rows, Index classes, const Execution& execution, const Body& body) {
  const Blocks blocks = row_blocks(rows, classes);
  parallel_for(blocks.number(), execution, [&](Index block) { body(blocks.first(block), blocks.length(block)); });
}

constexpr Index coupled_rows = 16;  // at least, at a time: trees and graphs take a vector of rows together

/// Blocks of rows for products with a coupling.
inline Blocks coupled_blocks(Index rows, Index columns) {
  return Blocks(rows, std::max<Index>(coupled_rows, vector_block / std::max<Index>(columns, 1)));
}

/// body(first row, rows) over these blocks, in parallel.
template <class Body>
void for_coupled_blocks(Index rows, Index columns, const Execution& execution, const Body& body) {
  const Blocks blocks = coupled_blocks(rows, columns);
  parallel_for(blocks.number(), execution, [&](Index block) { body(blocks.first(block), blocks.length(block)); });
}

/// Residuals at predictors u in the precision of the products; returns the loss.
inline double residual_block(const Likelihood& likelihood, Index first, Index count, const double* u, float* out) {
  return likelihood.single_residual(first, count, u, out);
}
inline double residual_block(const Likelihood& likelihood, Index first, Index count, const double* u, double* out) {
  std::copy(u, u + count * likelihood.outputs(), out);
  return likelihood.residual(first, count, out);
}

template <class T>
template <class Body>
LinePoint PredictorSpace<T>::residuals(double step, T* out, const Body& body) {
  const T* const du = image();
  const Index classes = u_.cols();
  return parallel_sum<LinePoint>(row_blocks(u_.rows(), classes), execution_, [&](Index first, Index count) {
    const Index size = count * classes;
    if (step != 0.0) axpy_block(step, du + first * classes, u_.row(first), size);
    T* const residual = out + first * classes;
    LinePoint sums;
    sums.value = residual_block(*problem_.likelihood, first, count, u_.row(first), residual);
    sums.slope = body(first * classes, size, residual);
    return sums;
  });
}

/// out = sum_k coefficients[k] vectors[k] over one block, in double precision. Reads four vectors at a time.
template <class T>
void combine_block(const std::vector<double>& coefficients, const std::vector<Buffer<T>>& vectors, Index first,
                   Index count, double* out) {
  std::fill(out, out + count, 0.0);
  std::array<double, 4> factor{};
  std::array<const T*, 4> from{};
  std::size_t pending = 0;
  for (std::size_t k = 0; k < coefficients.size(); ++k) {
    if (coefficients[k] != 0.0) {
      factor[pending] = coefficients[k];
      from[pending++] = vectors[k].data() + first;
    }
    if (pending == 4) {
      const T* const a = from[0];
      const T* const b = from[1];
      const T* const c = from[2];
      const T* const d = from[3];
#pragma omp simd
      for (Index i = 0; i < count; ++i)
        out[i] += factor[0] * a[i] + factor[1] * b[i] + factor[2] * c[i] + factor[3] * d[i];
      pending = 0;
    }
  }
  for (std::size_t k = 0; k < pending; ++k) axpy_block(factor[k], from[k], out, count);
}

/// Inner products of one vector with each of several, read in one pass.
template <class T>
std::vector<double> inner_products(const T* vector, const std::vector<Buffer<T>>& others, const std::vector<int>& which,
                                   Index size, const Execution& execution) {
  const Blocks blocks(size, vector_block);
  Matrix<double> parts(blocks.number(), static_cast<Index>(which.size()));
  parallel_for(blocks.number(), execution, [&](Index block) {
    const Index first = blocks.first(block);
    for (std::size_t k = 0; k < which.size(); ++k) {
      const T* const other = others[static_cast<std::size_t>(which[k])].data() + first;
      parts.row(block)[k] = dot_block(vector + first, other, blocks.length(block));
    }
  });
  std::vector<double> sums(which.size(), 0.0);
  for (Index block = 0; block < blocks.number(); ++block) axpy_block(1.0, parts.row(block), sums.data(), parts.cols());
  return sums;
}

}  // namespace taxolearn
