// The sparse matrices that the benchmark multiplies with: made up, or read from a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "taxolearn/base/matrix.hpp"

namespace taxolearn::bench {

template <class T>
struct Csr {
  Index rows = 0;
  Index cols = 0;
  std::vector<std::int32_t> offsets;  ///< rows + 1
  std::vector<std::int32_t> columns;
  std::vector<T> values;

  Index nonzeros() const { return static_cast<Index>(columns.size()); }
  SparseView<T, std::int32_t> view() const { return {values.data(), columns.data(), offsets.data(), rows, cols}; }
};

/// Text-like: feature frequencies fall like 1 / rank (Zipf), lengths of rows vary, rows have unit norm.
Csr<double> zipf_matrix(Index rows, Index cols, double nonzeros_per_row, std::uint64_t seed);

/// Reads what `python -m bench dump` writes: the 8 bytes "TAXOCSR1"; rows, cols, nonzeros (int64); offsets
/// (rows + 1, int64); columns (int32); values (float64); little-endian, nothing in between.
Csr<double> read_csr(const std::string& path);

template <class T>
Csr<T> convert(const Csr<double>& A);

template <class T>
Csr<T> transposed(const Csr<T>& A);

/// Columns renumbered by falling frequency, those with fewer than two entries left out: the least that a
/// product with A A^T has to gather.
Csr<double> most_frequent_first(const Csr<double>& A);

}  // namespace taxolearn::bench
