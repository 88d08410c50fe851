#include "execution.hpp"

namespace taxolearn::python {

void PythonMonitor::progress(const Progress& progress) {
  const py::gil_scoped_acquire locked;
  if (callback_.is_none()) return;
  try {
    callback_(progress.iteration, progress.products, progress.objective, progress.relative_gap, progress.seconds);
  } catch (py::error_already_set& error) {
    error_.emplace(std::move(error));
    stop();
  }
}

bool PythonMonitor::interrupted() {
  const py::gil_scoped_acquire locked;
  if (PyErr_CheckSignals() == 0) return false;
  error_.emplace();
  return true;
}

void PythonMonitor::rethrow() {
  if (error_) throw py::error_already_set(*error_);
  throw std::runtime_error("interrupted");
}

}  // namespace taxolearn::python
