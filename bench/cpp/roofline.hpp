// What this machine can do at best, measured, so that a kernel's speed can be given as a share of it.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "csr.hpp"
#include "timing.hpp"

namespace taxolearn::bench {

/// Multiply-adds on registers, two flops each, in full vectors: flops per second.
template <class T>
double peak_flops(int threads, const Repeats& repeats);

/// Exponentials of doubles that stay in the first cache, by Eigen: numbers per second.
double peak_exponentials(int threads, const Repeats& repeats);

/// Triad a = b + s c over three arrays of `bytes` together: bytes per second, 24 counted per element (the
/// cache line that a store may fetch first is not counted, as in STREAM).
double triad_bandwidth(double bytes, int threads, const Repeats& repeats);

/// Reads one row of a panel (rows x width) per index, in the order of the indices, adds the rows up in
/// registers and stores nothing: seconds for all indices.
template <class T>
double gather_seconds(const std::vector<std::int32_t>& indices, Index rows, Index width, int threads,
                      const Repeats& repeats);

std::string processor();
double last_cache_bytes();

/// Remembers measurements, so that each is done once.
class Roofline {
 public:
  explicit Roofline(Repeats repeats) : repeats_(repeats) {}

  template <class T>
  double flops(int threads);
  double exponentials(int threads);

  /// Bandwidth at a working set of this size, rounded down to a power of two: a bound also for work that
  /// stays in a cache. Sets beyond eight times the last cache count as that.
  double bandwidth(double bytes, int threads);

  /// Bandwidth of memory: a working set of eight times the last cache.
  double memory_bandwidth(int threads);

  /// The least time of the row reads of A (A^T S) with m columns: one row of S or of A^T S per nonzero, cut
  /// into the panels of the library; A as most_frequent_first() arranges it.
  template <class T>
  double product_gathers(const Csr<double>& A, const Csr<double>& transposed, Index m, int threads);

  /// Bandwidth of uniformly random gathers of panel rows from a panel of this many rows.
  template <class T>
  double random_gather_bandwidth(Index rows, Index m, int threads);

 private:
  template <class Measure>
  double once(const std::string& what, double size, int threads, const Measure& measure);

  Repeats repeats_;
  std::map<std::tuple<std::string, double, int>, double> known_;
};

}  // namespace taxolearn::bench
