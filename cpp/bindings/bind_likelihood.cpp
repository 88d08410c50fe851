#include <pybind11/native_enum.h>

#include "held_likelihood.hpp"
#include "taxolearn/likelihood/link.hpp"

namespace taxolearn::python {

void bind_likelihood(py::module_& module) {
  py::native_enum<Link>(module, "Link", "enum.Enum", "From predictors to probabilities.")
      .value("softmax", Link::softmax)
      .value("logistic", Link::logistic)
      .value("none", Link::none)
      .value("one_of", Link::one_of)
      .finalize();
  py::native_enum<Output>(module, "Output", "enum.Enum", "What a prediction consists of.")
      .value("predictor", Output::predictor)
      .value("probability", Output::probability)
      .value("log_probability", Output::log_probability)
      .finalize();
  py::class_<HeldLikelihood>(module, "Likelihood", py::module_local(), "The loss of all rows, by their predictors.")
      .def_property_readonly("rows", [](const HeldLikelihood& self) { return self.inner->rows(); })
      .def_property_readonly("outputs", [](const HeldLikelihood& self) { return self.inner->outputs(); })
      .def_property_readonly("link", [](const HeldLikelihood& self) { return self.inner->link(); });
  module.def("Softmax", &make_softmax, py::arg("targets"), py::arg("n_outputs"), py::arg("sample_weight") = py::none(),
             "Multinomial logistic loss.");
  module.def("IndependentLogistic", &make_independent_logistic, py::arg("targets"), py::arg("n_outputs"),
             py::arg("sample_weight") = py::none(), "A logistic loss for every output.");
  module.def("IndependentLogisticOfSets", &make_independent_logistic_of_sets, py::arg("labels"), py::arg("offsets"),
             py::arg("n_outputs"), py::arg("sample_weight") = py::none(),
             "A logistic loss for every output, any number of which are right at a row.");
}

}  // namespace taxolearn::python
