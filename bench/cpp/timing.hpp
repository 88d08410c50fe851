// Time of a piece of work: median, least and most of repeats after one run to warm up.
#pragma once

#include <functional>
#include <vector>

namespace taxolearn::bench {

struct Repeats {
  int least = 5;
  int most = 1000;
  double seconds = 0.5;  ///< repeat at least this long, within the two limits
};

struct Sample {
  double median = 0.0;
  double least = 0.0;
  double most = 0.0;
  int repeats = 0;
};

/// Times several pieces of work round robin, so that a disturbance of the machine meets all of them alike.
std::vector<Sample> time_interleaved(const std::vector<std::function<void()>>& work, const Repeats& repeats);

Sample time_one(const std::function<void()>& work, const Repeats& repeats);

/// Makes the compiler believe that someone reads, and may change, what is stored there.
inline void keep(void* data) { asm volatile("" : : "r"(data) : "memory"); }

}  // namespace taxolearn::bench
