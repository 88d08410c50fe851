// Parts of the library that the package does not show, for tests and benchmarks in Python.
#include <pybind11/pybind11.h>

#include "taxolearn/base/check.hpp"

namespace py = pybind11;

namespace taxolearn::python {
void bind_kernel_matrices(py::module_& module);
void bind_likelihood(py::module_& module);
void bind_linear(py::module_& module);
void bind_margin(py::module_& module);
}  // namespace taxolearn::python

PYBIND11_MODULE(taxolearn_testing, module) {
  py::module_::import("taxolearn._core");  // has the kernels
  module.doc() = "Operators and likelihoods of taxolearn's core, to be tested and timed from Python";
  py::register_local_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const taxolearn::InvalidArgument& error) {
      py::set_error(PyExc_ValueError, error.what());
    }
  });
  taxolearn::python::bind_kernel_matrices(module);
  taxolearn::python::bind_likelihood(module);
  taxolearn::python::bind_linear(module);
  taxolearn::python::bind_margin(module);
}
