#include <doctest/doctest.h>

#include <string>
#include <thread>

#include "taxolearn/base/monitor.hpp"

using namespace taxolearn;

namespace {

struct Counting : Monitor {
  int asked = 0;
  bool answer = false;
  bool interrupted() override {
    ++asked;
    return answer;
  }
};

void wait() { std::this_thread::sleep_for(Monitor::interval + std::chrono::milliseconds(5)); }

}  // namespace

TEST_CASE("the base monitor never stops anything") {
  Monitor monitor;
  monitor.progress(Progress());
  wait();
  monitor.poll();
  CHECK_FALSE(monitor.stopped());
  monitor.stop();
  CHECK(monitor.stopped());
}

TEST_CASE("a monitor is asked at most once an interval") {
  Counting monitor;
  monitor.poll();
  CHECK(monitor.asked == 0);
  wait();
  monitor.poll();
  monitor.poll();
  CHECK(monitor.asked == 1);
  CHECK_FALSE(monitor.stopped());
  wait();
  monitor.answer = true;
  monitor.poll();
  CHECK(monitor.asked == 2);
  CHECK(monitor.stopped());
}

TEST_CASE("an interruption has a name") { CHECK(std::string(Interrupted().what()) == "interrupted"); }
