#include <pybind11/stl.h>

#include "arrays.hpp"
#include "execution.hpp"
#include "taxolearn/bayes/moments.hpp"
#include "taxolearn/bayes/variational.hpp"

namespace taxolearn::python {
namespace {

FittedWeights as_fitted(const py::array& weights, const py::object& intercepts, Link link) {
  FittedWeights out;
  out.weights = as_matrix<double>("weights", weights);
  out.intercepts = as_vector<double>("intercepts", intercepts, out.weights.cols);
  require(out.intercepts != nullptr, "intercepts is None, expected an array of ", out.weights.cols, " elements");
  out.link = link;
  return out;
}

WeightMoments moments(const py::object& X, const py::object& sample_weight, const py::array& weights,
                      const py::object& intercepts, Link link, const Taxonomy& taxonomy, std::vector<Index> groups,
                      const py::array& variances, double intercept_variance, bool with_variances, int n_threads,
                      const py::object& progress) {
  const Input input = as_input(X);
  MomentsProblem problem;
  problem.X = input.view;
  problem.row_weights = as_vector<double>("sample_weight", sample_weight, input_rows(input.view));
  problem.fitted = as_fitted(weights, intercepts, link);
  problem.taxonomy = &taxonomy;
  problem.groups = std::move(groups);
  problem.variances = as_matrix<double>("variances", variances);
  problem.intercept_variance = intercept_variance;
  WeightMoments out;
  run(n_threads, progress,
      [&](const Execution& execution) { out = weight_moments(problem, with_variances, execution); });
  return out;
}

py::array_t<double> information(const py::object& X, const py::object& sample_weight, const py::array& weights,
                                const py::object& intercepts, Link link, int n_threads) {
  const Input input = as_input(X);
  const FittedWeights fitted = as_fitted(weights, intercepts, link);
  const double* const row_weights = as_vector<double>("sample_weight", sample_weight, input_rows(input.view));
  Matrix<double> out(input_features(input.view), fitted.weights.cols);
  run(n_threads, py::none(), [&](const Execution& execution) {
    observed_information(input.view, fitted, row_weights, out.view(), execution);
  });
  return as_array(std::move(out));
}

VariationalResult variational(const py::array& X, const py::object& sample_weight, const py::array& label_offsets,
                              const py::array& labels, Link link, const Taxonomy& taxonomy, std::vector<Index> groups,
                              std::vector<double> shapes, const py::array& rates, const py::array& variances,
                              double intercept_variance, int max_rounds, double tol, int n_threads,
                              const py::object& progress) {
  VariationalProblem problem;
  problem.X = as_matrix<double>("X", X);
  const Index n = problem.X.rows;
  problem.row_weights = as_vector<double>("sample_weight", sample_weight, n);
  problem.label_offsets = as_vector<std::int64_t>("label_offsets", label_offsets, n + 1);
  problem.labels = as_vector<std::int32_t>("labels", labels, labels.size());
  require(problem.label_offsets[n] <= labels.size(), "label_offsets ends at ", problem.label_offsets[n],
          " but there are ", labels.size(), " labels");
  problem.link = link;
  problem.taxonomy = &taxonomy;
  problem.groups = std::move(groups);
  problem.shapes = std::move(shapes);
  problem.rates = as_matrix<double>("rates", rates);
  problem.variances = as_matrix<double>("variances", variances);
  problem.intercept_variance = intercept_variance;
  VariationalResult out;
  run(n_threads, progress, [&](const Execution& execution) {
    out = fit_variational(problem, VariationalSettings{max_rounds, tol}, execution);
  });
  return out;
}

py::array_t<double> as_floats(const std::vector<double>& from) {
  return py::array_t<double>(static_cast<py::ssize_t>(from.size()), from.data());
}

}  // namespace

void bind_bayes(py::module_& module) {
  py::class_<WeightMoments>(module, "WeightMoments", py::module_local(), "What a posterior says of prior variances.")
      .def(
          "take_squares", [](WeightMoments& self) { return as_array(std::move(self.squares)); },
          "Hands over the sums of squared increments.")
      .def(
          "take_spreads", [](WeightMoments& self) { return as_array(std::move(self.spreads)); },
          "Hands over the sums of the variances of increments.")
      .def(
          "take_variances", [](WeightMoments& self) { return as_array(std::move(self.variances)); },
          "Hands over the variances of the leaves' weights.")
      .def_property_readonly("intercept_variances",
                             [](const WeightMoments& self) { return as_floats(self.intercept_variances); });
  py::class_<VariationalResult>(module, "VariationalResult", py::module_local(), "How variational inference went.")
      .def_readonly("converged", &VariationalResult::converged)
      .def_property_readonly("bounds", [](const VariationalResult& self) { return as_floats(self.bounds); })
      .def_property_readonly("intercepts", [](const VariationalResult& self) { return as_floats(self.intercepts); })
      .def_property_readonly("intercept_variances",
                             [](const VariationalResult& self) { return as_floats(self.intercept_variances); })
      .def(
          "take_weights", [](VariationalResult& self) { return as_array(std::move(self.weights)); },
          "Hands over the means of the weights.")
      .def(
          "take_variances", [](VariationalResult& self) { return as_array(std::move(self.variances)); },
          "Hands over the variances of the weights.")
      .def(
          "take_rates", [](VariationalResult& self) { return as_array(std::move(self.rates)); },
          "Hands over the rates of the Gamma posteriors.");
  module.def("weight_moments", &moments, "Moments of the posterior of weights on a tree, in Laplace's approximation.",
             py::kw_only(), py::arg("X"), py::arg("sample_weight") = py::none(), py::arg("weights"),
             py::arg("intercepts"), py::arg("link"), py::arg("taxonomy"), py::arg("groups"), py::arg("variances"),
             py::arg("intercept_variance"), py::arg("with_variances") = false, py::arg("n_threads") = 1,
             py::arg("progress") = py::none());
  module.def("observed_information", &information, "The diagonal of the observed information at fitted weights.",
             py::kw_only(), py::arg("X"), py::arg("sample_weight") = py::none(), py::arg("weights"),
             py::arg("intercepts"), py::arg("link"), py::arg("n_threads") = 1);
  const VariationalSettings defaults;
  module.def("fit_variational", &variational, "Variational inference by Bouchard's bound.", py::kw_only(), py::arg("X"),
             py::arg("sample_weight") = py::none(), py::arg("label_offsets"), py::arg("labels"), py::arg("link"),
             py::arg("taxonomy"), py::arg("groups"), py::arg("shapes"), py::arg("rates"), py::arg("variances"),
             py::arg("intercept_variance"), py::arg("max_rounds") = defaults.max_rounds,
             py::arg("tol") = defaults.tolerance, py::arg("n_threads") = 1, py::arg("progress") = py::none());
}

}  // namespace taxolearn::python
