// Runs the library for Python: without the interpreter's lock, on the threads asked for, open to Ctrl-C.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/parallel.hpp"

namespace taxolearn::python {

namespace py = pybind11;

/// Calls a Python function with each Progress (unless None) and asks the interpreter for pending signals.
class PythonMonitor final : public Monitor {
 public:
  explicit PythonMonitor(py::object callback) : callback_(std::move(callback)) {}

  void progress(const Progress& progress) override;
  bool interrupted() override;

  /// To be called after Interrupted, with the lock held: throws what the interpreter or the callback raised.
  void rethrow();

 private:
  py::object callback_;
  std::optional<py::error_already_set> error_;
};

/// Calls work(execution) with the lock released.
template <class Work>
void run(int threads, const py::object& callback, const Work& work) {
  require(threads >= 1, "n_threads must be at least 1, got ", threads);
  PythonMonitor monitor(callback);
  try {
    const py::gil_scoped_release unlocked;
    work(Execution{threads, &monitor});
  } catch (const Interrupted&) {
    monitor.rethrow();
  }
}

}  // namespace taxolearn::python
