#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "problems.hpp"
#include "taxolearn/base/parallel.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

/// May be asked at once, and remembers which threads asked.
struct Answering : Monitor {
  bool answer;
  std::mutex mutex;
  std::set<std::thread::id> askers;

  explicit Answering(bool answer_) : answer(answer_) { std::this_thread::sleep_for(interval); }
  bool interrupted() override {
    const std::lock_guard<std::mutex> lock(mutex);
    askers.insert(std::this_thread::get_id());
    return answer;
  }
};

}  // namespace

TEST_CASE("every block runs once") {
  for (const int threads : {1, 2, 5}) {
    for (const Index blocks : {0, 1, 2, 100}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(blocks) + 1);
      parallel_for(blocks, Execution{threads, nullptr}, [&](Index block) { ++runs[static_cast<std::size_t>(block)]; });
      for (Index k = 0; k <= blocks; ++k) CHECK(runs[static_cast<std::size_t>(k)] == (k < blocks ? 1 : 0));
    }
  }
}

TEST_CASE("as many threads as asked for take part") {
  CHECK(available_threads() >= 1);
  for (const std::size_t threads : {1, 2}) {
    std::mutex mutex;
    std::set<std::thread::id> seen;
    parallel_for(40, Execution{static_cast<int>(threads), nullptr}, [&](Index) {
      pause();
      const std::lock_guard<std::mutex> lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
    CHECK(seen.size() == threads);
  }
}

TEST_CASE("blocks cover a range without overlap") {
  for (const Index count : {0, 1, 9, 10, 11}) {
    for (const Index size : {0, 1, 5, 100}) {
      const Blocks blocks(count, size);
      Index end = 0;
      for (Index block = 0; block < blocks.number(); ++block) {
        CHECK(blocks.first(block) == end);
        CHECK(blocks.length(block) >= 1);
        CHECK(blocks.length(block) <= std::max<Index>(size, 1));
        end += blocks.length(block);
      }
      CHECK(end == count);
    }
  }
}

TEST_CASE("a sum is the same to the last bit for any number of threads") {
  Random random(1);
  const MatrixXd values = random.matrix(10000, 1) * 1e6;
  const auto sum = [&](int threads) {
    return parallel_sum<double>(Blocks(values.size(), 37), Execution{threads, nullptr}, [&](Index first, Index count) {
      double part = 0.0;
      for (Index k = first; k < first + count; ++k) part += values(k);
      return part;
    });
  };
  CHECK(sum(1) == doctest::Approx(values.sum()).epsilon(1e-12));
  for (const int threads : {2, 3, 8}) CHECK(sum(threads) == sum(1));
  CHECK(parallel_sum<double>(Blocks(0, 5), Execution{2, nullptr}, [](Index, Index) { return 1.0; }) == 0.0);
}

TEST_CASE("a monitor that says stop ends the loop with Interrupted") {
  for (const int threads : {1, 2}) {
    Answering monitor(true);
    std::atomic<int> runs{0};
    const auto loop = [&] {
      parallel_for(500, Execution{threads, &monitor}, [&](Index) {
        ++runs;
        pause();
      });
    };
    CHECK_THROWS_AS(loop(), Interrupted);
    CHECK(runs < 250);
    CHECK(monitor.askers == std::set<std::thread::id>{std::this_thread::get_id()});
  }
}

TEST_CASE("any thread may stop the loop") {
  for (const int threads : {1, 2}) {
    Monitor monitor;
    std::atomic<int> runs{0};
    const auto loop = [&] {
      parallel_for(1000, Execution{threads, &monitor}, [&](Index block) {
        ++runs;
        if (block == 10) monitor.stop();
        pause();
      });
    };
    CHECK_THROWS_AS(loop(), Interrupted);
    CHECK(runs >= 1);
    CHECK(runs < 500);
  }
}

TEST_CASE("a loop inside a loop is serial") {
  std::atomic<int> elsewhere{0};
  std::atomic<int> runs{0};
  const Execution execution{2, nullptr};
  parallel_for(4, execution, [&](Index) {
    const std::thread::id mine = std::this_thread::get_id();
    parallel_for(20, execution, [&](Index) {
      ++runs;
      if (std::this_thread::get_id() != mine) ++elsewhere;
    });
  });
  CHECK(runs == 80);
  CHECK(elsewhere == 0);
}

TEST_CASE("a loop inside a loop leaves the interruption to the outer one") {
  Monitor monitor;
  const Execution execution{2, &monitor};
  std::atomic<int> inner{0};
  const auto loops = [&] {
    parallel_for(4, execution, [&](Index) {
      monitor.stop();
      parallel_for(20, execution, [&](Index) { ++inner; });
    });
  };
  CHECK_THROWS_AS(loops(), Interrupted);
  CHECK(inner == 0);
}

TEST_CASE("a loop inside a loop asks the monitor from the calling thread only") {
  Answering monitor(false);
  const Execution execution{2, &monitor};
  parallel_for(8, execution, [&](Index) { parallel_for(20, execution, [](Index) { pause(); }); });
  CHECK(monitor.askers == std::set<std::thread::id>{std::this_thread::get_id()});
}
