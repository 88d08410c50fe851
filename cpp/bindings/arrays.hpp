// Conversions between NumPy arrays and views. Nothing is copied on the way in: an array of another type,
// order or shape is an error here, because python/taxolearn/validation.py has already converted everything.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/matrix.hpp"
#include "taxolearn/data/input.hpp"

namespace taxolearn::python {

namespace py = pybind11;

/// Inputs as a view, and the arrays that must stay alive for it.
struct Input {
  InputView view;
  std::vector<py::array> owners;
};

/// From a C-ordered float32 or float64 array, a CSR matrix of scipy with 32- or 64-bit indices, or an object whose
/// attribute `matrices` has several of these.
Input as_input(const py::object& X);

template <class T>
DenseView<const T> as_matrix(const char* name, const py::array& array) {
  require(py::isinstance<py::array_t<T>>(array) && array.ndim() == 2, name, " must be a matrix of ",
          sizeof(T) == 4 ? "float32" : "float64", ", got ", std::string(py::str(array.dtype())), " with ", array.ndim(),
          " dimensions");
  if (array.size() == 0) return {nullptr, array.shape(0), array.shape(1), array.shape(1)};
  const bool rows_contiguous = array.shape(1) <= 1 || array.strides(1) == static_cast<py::ssize_t>(sizeof(T));
  require(rows_contiguous && array.strides(0) >= 0 && array.strides(0) % static_cast<py::ssize_t>(sizeof(T)) == 0, name,
          " must be C-ordered");
  return {static_cast<const T*>(array.data()), array.shape(0), array.shape(1),
          array.strides(0) / static_cast<py::ssize_t>(sizeof(T))};
}

/// A contiguous vector of the given length, or null for None.
template <class T>
const T* as_vector(const char* name, const py::object& object, Index size) {
  if (object.is_none()) return nullptr;
  require(py::isinstance<py::array_t<T, py::array::c_style>>(object), name, " must be a contiguous array");
  const auto array = py::cast<py::array>(object);
  require(array.size() == size, name, " has ", array.size(), " elements, expected ", size);
  return static_cast<const T*>(array.data());
}

/// A new array that takes over the buffer's memory.
template <class T>
py::array_t<T> as_array(Buffer<T>&& buffer) {
  auto* const owner = new Buffer<T>(std::move(buffer));
  const py::capsule release(owner, [](void* pointer) { delete static_cast<Buffer<T>*>(pointer); });
  return py::array_t<T>(static_cast<py::ssize_t>(owner->size()), owner->data(), release);
}

/// A new array that takes over the matrix's memory.
py::array_t<double> as_array(Matrix<double>&& matrix);

}  // namespace taxolearn::python
