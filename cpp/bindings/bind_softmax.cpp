#include "arrays.hpp"
#include "targets.hpp"
#include "taxolearn/likelihood/softmax.hpp"

namespace taxolearn::python {
namespace {

using Block = py::array_t<double, py::array::c_style>;

/// A copy of a block of all rows, for functions that work in place.
Block copy_of(const HeldSoftmax& self, const Block& block) {
  require(
      block.ndim() == 2 && block.shape(0) == self.likelihood->rows() && block.shape(1) == self.likelihood->classes(),
      "expected an array of shape (", self.likelihood->rows(), ", ", self.likelihood->classes(), ")");
  Block copy({block.shape(0), block.shape(1)});
  std::copy(block.data(), block.data() + block.size(), copy.mutable_data());
  return copy;
}

}  // namespace

void bind_softmax(py::module_& module) {
  py::class_<HeldSoftmax>(module, "Softmax", py::module_local(), "Multinomial logistic loss of all rows.")
      .def(py::init<py::array, Index, py::object>(), py::arg("targets"), py::arg("n_classes"),
           py::arg("weights") = py::none())
      .def("residual",
           [](const HeldSoftmax& self, const Block& u) {
             Block out = copy_of(self, u);
             const double loss = self.likelihood->residual(0, out.shape(0), out.mutable_data());
             return py::make_tuple(loss, out);
           })
      .def("line",
           [](const HeldSoftmax& self, const Block& u, const Block& du) {
             Block at = copy_of(self, u);
             const Block along = copy_of(self, du);
             const LinePoint point = self.likelihood->line(0, at.shape(0), at.mutable_data(), along.data());
             return py::make_tuple(point.value, point.slope, point.curvature);
           })
      .def("curve",
           [](const HeldSoftmax& self, const Block& u) {
             Block out = copy_of(self, u);
             self.likelihood->curve(0, out.shape(0), out.mutable_data());
             return out;
           })
      .def("root",
           [](const HeldSoftmax& self, const Block& state, const Block& x) {
             Block out = copy_of(self, x);
             self.likelihood->root(0, out.shape(0), copy_of(self, state).data(), out.mutable_data());
             return out;
           })
      .def("root_transposed",
           [](const HeldSoftmax& self, const Block& state, const Block& x) {
             Block out = copy_of(self, x);
             self.likelihood->root_transposed(0, out.shape(0), copy_of(self, state).data(), out.mutable_data());
             return out;
           })
      .def("root_diagonal", [](const HeldSoftmax& self, const Block& state) {
        Block out = copy_of(self, state);
        self.likelihood->root_diagonal(0, out.shape(0), copy_of(self, state).data(), out.mutable_data());
        return out;
      });
}

}  // namespace taxolearn::python
