#include <pybind11/pybind11.h>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/parallel.hpp"

namespace py = pybind11;

namespace taxolearn::python {
void bind_bayes(py::module_& module);
void bind_classes(py::module_& module);
void bind_kernels(py::module_& module);
void bind_likelihood(py::module_& module);
void bind_embedding(py::module_& module);
void bind_fit(py::module_& module);
void bind_data(py::module_& module);
void bind_margin(py::module_& module);
void bind_recursive(py::module_& module);
void bind_select(py::module_& module);
void bind_settings(py::module_& module);
}  // namespace taxolearn::python

PYBIND11_MODULE(TAXOLEARN_MODULE, module) {
  module.doc() = "Numerical core of taxolearn";
  module.attr("simd_level") = TAXOLEARN_SIMD_LEVEL;
  module.def("available_threads", &taxolearn::available_threads, "Threads that OpenMP would use by default.");
  py::register_local_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const taxolearn::InvalidArgument& error) {
      py::set_error(PyExc_ValueError, error.what());
    }
  });
  taxolearn::python::bind_classes(module);
  taxolearn::python::bind_kernels(module);
  taxolearn::python::bind_likelihood(module);
  taxolearn::python::bind_settings(module);
  taxolearn::python::bind_fit(module);
  taxolearn::python::bind_data(module);
  taxolearn::python::bind_embedding(module);
  taxolearn::python::bind_bayes(module);
  taxolearn::python::bind_margin(module);
  taxolearn::python::bind_recursive(module);
  taxolearn::python::bind_select(module);
}
