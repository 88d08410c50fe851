#include "timing.hpp"

#include <algorithm>
#include <chrono>

namespace taxolearn::bench {
namespace {

double seconds_of(const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Sample summary(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const std::size_t middle = times.size() / 2;
  const double median = times.size() % 2 == 1 ? times[middle] : 0.5 * (times[middle - 1] + times[middle]);
  return {median, times.front(), times.back(), static_cast<int>(times.size())};
}

}  // namespace

std::vector<Sample> time_interleaved(const std::vector<std::function<void()>>& work, const Repeats& repeats) {
  for (const auto& piece : work) piece();
  std::vector<std::vector<double>> times(work.size());
  const double budget = repeats.seconds * static_cast<double>(work.size());
  double spent = 0.0;
  for (int round = 0; round < repeats.least || (round < repeats.most && spent < budget); ++round) {
    for (std::size_t k = 0; k < work.size(); ++k) {
      times[k].push_back(seconds_of(work[k]));
      spent += times[k].back();
    }
  }
  std::vector<Sample> samples;
  for (std::vector<double>& series : times) samples.push_back(summary(std::move(series)));
  return samples;
}

Sample time_one(const std::function<void()>& work, const Repeats& repeats) {
  return time_interleaved({work}, repeats).front();
}

}  // namespace taxolearn::bench
