#include "csr.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <random>
#include <stdexcept>

namespace taxolearn::bench {
namespace {

template <class T>
std::vector<T> read_array(std::ifstream& file, std::int64_t count) {
  std::vector<T> out(static_cast<std::size_t>(count));
  file.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size() * sizeof(T)));
  return out;
}

}  // namespace

Csr<double> zipf_matrix(Index rows, Index cols, double nonzeros_per_row, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::int32_t> names(static_cast<std::size_t>(cols));
  std::iota(names.begin(), names.end(), 0);
  std::shuffle(names.begin(), names.end(), random);
  std::vector<double> cumulative(names.size());
  double sum = 0.0;
  for (std::size_t rank = 0; rank < cumulative.size(); ++rank) {
    sum += 1.0 / (static_cast<double>(rank) + 3.0);
    cumulative[rank] = sum;
  }
  std::uniform_real_distribution<double> uniform(0.0, sum);
  std::uniform_real_distribution<double> value(0.2, 1.0);
  constexpr double spread = 0.6;
  std::lognormal_distribution<double> length(std::log(nonzeros_per_row) - 0.5 * spread * spread, spread);

  Csr<double> A;
  A.rows = rows;
  A.cols = cols;
  A.offsets.push_back(0);
  std::vector<std::int32_t> row;
  for (Index i = 0; i < rows; ++i) {
    const auto wanted = static_cast<std::size_t>(std::clamp(length(random), 1.0, 0.5 * static_cast<double>(cols)));
    row.clear();
    while (row.size() < wanted) {  // draw what is missing, drop duplicates, until the row is full
      for (std::size_t missing = wanted - row.size(); missing > 0; --missing) {
        const auto rank = std::lower_bound(cumulative.begin(), cumulative.end() - 1, uniform(random));
        row.push_back(names[static_cast<std::size_t>(rank - cumulative.begin())]);
      }
      std::sort(row.begin(), row.end());
      row.erase(std::unique(row.begin(), row.end()), row.end());
    }
    double square = 0.0;
    const std::size_t first = A.values.size();
    for (const std::int32_t column : row) {
      A.columns.push_back(column);
      A.values.push_back(value(random));
      square += A.values.back() * A.values.back();
    }
    for (std::size_t k = first; k < A.values.size(); ++k) A.values[k] /= std::sqrt(square);
    A.offsets.push_back(static_cast<std::int32_t>(A.columns.size()));
  }
  return A;
}

Csr<double> read_csr(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string magic(8, '\0');
  file.read(magic.data(), 8);
  if (!file || magic != "TAXOCSR1") throw std::runtime_error(path + " is not a matrix file of this benchmark");
  const auto shape = read_array<std::int64_t>(file, 3);
  Csr<double> A;
  A.rows = shape[0];
  A.cols = shape[1];
  const auto offsets = read_array<std::int64_t>(file, shape[0] + 1);
  A.offsets.assign(offsets.begin(), offsets.end());
  A.columns = read_array<std::int32_t>(file, shape[2]);
  A.values = read_array<double>(file, shape[2]);
  if (!file || offsets.back() != shape[2]) throw std::runtime_error(path + " is cut off");
  return A;
}

template <class T>
Csr<T> convert(const Csr<double>& A) {
  return {A.rows, A.cols, A.offsets, A.columns, std::vector<T>(A.values.begin(), A.values.end())};
}

template <class T>
Csr<T> transposed(const Csr<T>& A) {
  Csr<T> B;
  B.rows = A.cols;
  B.cols = A.rows;
  B.offsets.assign(static_cast<std::size_t>(A.cols) + 1, 0);
  for (const std::int32_t j : A.columns) ++B.offsets[static_cast<std::size_t>(j) + 1];
  std::partial_sum(B.offsets.begin(), B.offsets.end(), B.offsets.begin());
  B.columns.resize(A.columns.size());
  B.values.resize(A.values.size());
  std::vector<std::int32_t> next(B.offsets.begin(), B.offsets.end() - 1);
  for (std::size_t i = 0; i + 1 < A.offsets.size(); ++i) {
    for (auto k = static_cast<std::size_t>(A.offsets[i]); k < static_cast<std::size_t>(A.offsets[i + 1]); ++k) {
      const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(A.columns[k])]++);
      B.columns[at] = static_cast<std::int32_t>(i);
      B.values[at] = A.values[k];
    }
  }
  return B;
}

Csr<double> most_frequent_first(const Csr<double>& A) {
  const auto cols = static_cast<std::size_t>(A.cols);
  std::vector<std::int32_t> counts(cols, 0), order(cols), number(cols, -1);
  for (const std::int32_t j : A.columns) ++counts[static_cast<std::size_t>(j)];
  std::iota(order.begin(), order.end(), 0);
  const auto count = [&](std::int32_t j) { return counts[static_cast<std::size_t>(j)]; };
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return count(a) > count(b); });
  Csr<double> B;
  B.rows = A.rows;
  for (const std::int32_t j : order) {
    if (count(j) >= 2) number[static_cast<std::size_t>(j)] = static_cast<std::int32_t>(B.cols++);
  }
  B.offsets.push_back(0);
  for (std::size_t i = 0; i + 1 < A.offsets.size(); ++i) {
    for (auto k = static_cast<std::size_t>(A.offsets[i]); k < static_cast<std::size_t>(A.offsets[i + 1]); ++k) {
      const std::int32_t j = number[static_cast<std::size_t>(A.columns[k])];
      if (j < 0) continue;
      B.columns.push_back(j);
      B.values.push_back(A.values[k]);
    }
    B.offsets.push_back(static_cast<std::int32_t>(B.columns.size()));
  }
  return B;
}

template Csr<float> convert(const Csr<double>&);
template Csr<double> convert(const Csr<double>&);
template Csr<float> transposed(const Csr<float>&);
template Csr<double> transposed(const Csr<double>&);

}  // namespace taxolearn::bench
