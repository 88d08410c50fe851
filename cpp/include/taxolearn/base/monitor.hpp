// The outside world of a long computation: who watches its progress and who may stop it.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>

namespace taxolearn {

/// What a solver reports after each iteration.
struct Progress {
  int iteration = 0;
  int products = 0;
  double objective = 0.0;
  double relative_gap = 0.0;
  double seconds = 0.0;
};

/// Raised when the monitor asked to stop. The computation's buffers are then in no defined state.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

/// The base class does nothing: it reports no progress and never interrupts.
class Monitor {
 public:
  virtual ~Monitor() = default;
  virtual void progress(const Progress&) {}

  /// Asked from the thread that called the library, at most every `interval`; true stops the computation.
  virtual bool interrupted() { return false; }

  /// Cheap enough to be called between blocks of a few microseconds of work, by the calling thread only.
  void poll() {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < interval) return;
    last_ = now;
    if (interrupted()) stop();
  }

  void stop() { stopped_.store(true, std::memory_order_relaxed); }

  /// Any thread may ask.
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

  static constexpr std::chrono::milliseconds interval{50};

 private:
  std::atomic<bool> stopped_{false};
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace taxolearn
