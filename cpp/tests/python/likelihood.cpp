#include "arrays.hpp"
#include "held_likelihood.hpp"

namespace taxolearn::python {
namespace {

using Block = py::array_t<double, py::array::c_style>;

/// A copy of a block of all rows, for functions that work in place.
Block copy_of(const HeldLikelihood& self, const Block& block) {
  require(block.ndim() == 2 && block.shape(0) == self.inner->rows() && block.shape(1) == self.inner->outputs(),
          "expected an array of shape (", self.inner->rows(), ", ", self.inner->outputs(), ")");
  Block copy({block.shape(0), block.shape(1)});
  std::copy(block.data(), block.data() + block.size(), copy.mutable_data());
  return copy;
}

}  // namespace

void bind_likelihood(py::module_& module) {
  py::class_<HeldLikelihood>(module, "Likelihood", py::module_local(), "The loss of all rows.")
      .def("residual",
           [](const HeldLikelihood& self, const Block& u) {
             Block out = copy_of(self, u);
             const double loss = self.inner->residual(0, out.shape(0), out.mutable_data());
             return py::make_tuple(loss, out);
           })
      .def("line",
           [](const HeldLikelihood& self, const Block& u, const Block& du) {
             Block at = copy_of(self, u);
             const Block along = copy_of(self, du);
             const LinePoint point = self.inner->line(0, at.shape(0), at.mutable_data(), along.data());
             return py::make_tuple(point.value, point.slope, point.curvature);
           })
      .def("curvature",
           [](const HeldLikelihood& self, const Block& u) {
             Block out = copy_of(self, u);
             self.inner->curvature(0, out.shape(0), out.mutable_data());
             return out;
           })
      .def("root",
           [](const HeldLikelihood& self, const Block& state, const Block& x) {
             Block out = copy_of(self, x);
             self.inner->root(0, out.shape(0), copy_of(self, state).data(), out.mutable_data());
             return out;
           })
      .def("root_transposed",
           [](const HeldLikelihood& self, const Block& state, const Block& x) {
             Block out = copy_of(self, x);
             self.inner->root_transposed(0, out.shape(0), copy_of(self, state).data(), out.mutable_data());
             return out;
           })
      .def("root_diagonal", [](const HeldLikelihood& self, const Block& state) {
        Block out = copy_of(self, state);
        self.inner->root_diagonal(0, out.shape(0), copy_of(self, state).data(), out.mutable_data());
        return out;
      });
  module.def("Softmax", &make_softmax, py::arg("targets"), py::arg("n_outputs"), py::arg("sample_weight") = py::none());
  module.def("IndependentLogistic", &make_independent_logistic, py::arg("targets"), py::arg("n_outputs"),
             py::arg("sample_weight") = py::none());
}

}  // namespace taxolearn::python
