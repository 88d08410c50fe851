#include <pybind11/native_enum.h>
#include <pybind11/stl.h>

#include "arrays.hpp"
#include "execution.hpp"
#include "taxolearn/embedding/fit.hpp"

namespace taxolearn::python {
namespace {

EmbeddingResult fit_problem(const py::object& X, const py::array& label_offsets, const py::array& labels,
                            Index n_classes, const py::object& sample_weight, bool center,
                            const EmbeddingSettings& settings, bool single_precision, int n_threads,
                            const py::object& progress) {
  const Input input = as_input(X);
  const Index n = input_rows(input.view);
  EmbeddingProblem problem;
  problem.X = input.view;
  problem.classes = n_classes;
  problem.label_offsets = as_vector<std::int64_t>("label_offsets", label_offsets, n + 1);
  problem.labels = as_vector<std::int32_t>("labels", labels, labels.size());
  require(problem.label_offsets[n] <= labels.size(), "label_offsets ends at ", problem.label_offsets[n],
          " but there are ", labels.size(), " labels");
  problem.row_weights = as_vector<double>("sample_weight", sample_weight, n);
  problem.center = center;
  EmbeddingResult result;
  run(n_threads, progress, [&](const Execution& execution) {
    result = single_precision ? fit_embedding<float>(problem, settings, execution)
                              : fit_embedding<double>(problem, settings, execution);
  });
  return result;
}

template <class Field>
auto taken(Field field) {
  return [field](EmbeddingResult& self) { return as_array(std::move(self.*field)); };
}

template <class Field>
auto as_floats(Field field) {
  return [field](const EmbeddingResult& self) {
    const std::vector<double>& from = self.*field;
    return py::array_t<double>(static_cast<py::ssize_t>(from.size()), from.data());
  };
}

}  // namespace

void bind_embedding(py::module_& module) {
  py::native_enum<EmbeddingMethod>(module, "EmbeddingMethod", "enum.Enum", "What the components are eigenvectors of.")
      .value("rembrandt", EmbeddingMethod::rembrandt)
      .value("plst", EmbeddingMethod::label_moments)
      .value("random", EmbeddingMethod::random)
      .value("pca", EmbeddingMethod::pca)
      .finalize();
  const EmbeddingSettings defaults;
  py::class_<EmbeddingSettings>(module, "EmbeddingSettings", py::module_local(), "How labels are embedded.")
      .def(py::init([](EmbeddingMethod method, Index n_components, Index oversampling, int rounds, double ridge,
                       double tol, int max_iter, std::uint64_t seed) {
             return EmbeddingSettings{method, n_components, oversampling, rounds, ridge, tol, max_iter, seed};
           }),
           py::kw_only(), py::arg("method") = defaults.method, py::arg("n_components") = defaults.components,
           py::arg("oversampling") = defaults.oversampling, py::arg("rounds") = defaults.rounds,
           py::arg("ridge") = defaults.ridge, py::arg("tol") = defaults.tolerance,
           py::arg("max_iter") = defaults.max_iterations, py::arg("seed") = defaults.seed);
  py::class_<EmbeddingResult>(module, "EmbeddingResult", py::module_local(), "What was found, and how good it is.")
      .def_readonly("converged", &EmbeddingResult::converged)
      .def_readonly("iterations", &EmbeddingResult::iterations)
      .def_readonly("ridge", &EmbeddingResult::ridge)
      .def_readonly("objective", &EmbeddingResult::objective)
      .def_readonly("gap", &EmbeddingResult::gap)
      .def_readonly("seconds", &EmbeddingResult::seconds)
      .def_property_readonly("values", as_floats(&EmbeddingResult::values))
      .def_property_readonly("intercepts", as_floats(&EmbeddingResult::intercepts))
      .def_property_readonly("mean", as_floats(&EmbeddingResult::mean))
      .def_property_readonly("residuals", as_floats(&EmbeddingResult::residuals))
      .def_property_readonly("path_ridges", as_floats(&EmbeddingResult::path_ridges))
      .def_property_readonly("path_errors", as_floats(&EmbeddingResult::path_errors))
      .def("take_components", taken(&EmbeddingResult::components), "Hands over the components.")
      .def("take_weights", taken(&EmbeddingResult::weights), "Hands over the weights.")
      .def("take_moments", taken(&EmbeddingResult::moments), "Hands over the moments of the rows' embeddings.");
  module.def("fit_embedding", &fit_problem, "Embeds labels and regresses their embeddings.", py::kw_only(),
             py::arg("X"), py::arg("label_offsets"), py::arg("labels"), py::arg("n_classes"),
             py::arg("sample_weight") = py::none(), py::arg("center") = true, py::arg("settings") = EmbeddingSettings{},
             py::arg("single_precision") = false, py::arg("n_threads") = 1, py::arg("progress") = py::none());
}

}  // namespace taxolearn::python
