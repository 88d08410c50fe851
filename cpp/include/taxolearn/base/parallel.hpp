// Threads: one helper that every loop of the library goes through.
//
// Work is cut into blocks whose number and borders depend on the problem, never on the number of threads, and
// sums are added up block by block in order. So results are the same for any number of threads.
#pragma once

#include <algorithm>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/monitor.hpp"

namespace taxolearn {

/// How a computation runs: on how many threads, and under whose eyes.
struct Execution {
  int threads = 1;
  Monitor* monitor = nullptr;
};

inline int available_threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

/// Whether this thread is working on a block of a parallel_for.
inline thread_local bool inside_parallel_for = false;

/// Calls body(block) for block = 0 .. blocks - 1 in any order; throws Interrupted if the monitor says so.
/// Serial when there is one block or one thread, or inside another parallel region. The body must not throw; a loop
/// inside the body leaves it to the outer loop to ask the monitor and to throw.
template <class Body>
void parallel_for(Index blocks, const Execution& execution, const Body& body) {
  Monitor* const monitor = execution.monitor;
  const bool nested = inside_parallel_for;
  const auto guarded = [&](Index block, bool caller) {
    if (monitor != nullptr) {
      if (caller) monitor->poll();
      if (monitor->stopped()) return;
    }
    body(block);
  };
#ifdef _OPENMP
  const int threads = static_cast<int>(std::min<Index>(execution.threads, blocks));
  if (threads > 1 && !nested && !omp_in_parallel()) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (Index block = 0; block < blocks; ++block) {
      inside_parallel_for = true;
      guarded(block, omp_get_thread_num() == 0);
      inside_parallel_for = false;
    }
    if (monitor != nullptr && monitor->stopped()) throw Interrupted();
    return;
  }
#endif
  for (Index block = 0; block < blocks; ++block) guarded(block, !nested);
  if (!nested && monitor != nullptr && monitor->stopped()) throw Interrupted();
}

/// For bodies of parallel_for that take long: true if the monitor says stop, whereupon the body should return.
inline bool interrupted(const Execution& execution) {
  if (execution.monitor == nullptr) return false;
#ifdef _OPENMP
  const bool caller = omp_get_thread_num() == 0;
#else
  const bool caller = true;
#endif
  if (caller) execution.monitor->poll();
  return execution.monitor->stopped();
}

/// A range 0 .. count cut into equal blocks.
struct Blocks {
  Index count = 0;
  Index size = 1;

  Blocks(Index count_, Index size_) : count(count_), size(std::max<Index>(size_, 1)) {}
  Index number() const { return (count + size - 1) / size; }
  Index first(Index block) const { return block * size; }
  Index length(Index block) const { return std::min(size, count - block * size); }
};

/// Sums body(first, length) over blocks; Sum needs a zero from Sum{} and +=. The same for any number of
/// threads.
template <class Sum, class Body>
Sum parallel_sum(const Blocks& blocks, const Execution& execution, const Body& body) {
  std::vector<Sum> parts(static_cast<std::size_t>(blocks.number()));
  parallel_for(blocks.number(), execution, [&](Index block) {
    parts[static_cast<std::size_t>(block)] = body(blocks.first(block), blocks.length(block));
  });
  Sum sum{};
  for (const Sum& part : parts) sum += part;
  return sum;
}

}  // namespace taxolearn
