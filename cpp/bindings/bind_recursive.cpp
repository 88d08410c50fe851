#include <pybind11/native_enum.h>
#include <pybind11/stl.h>

#include "arrays.hpp"
#include "execution.hpp"
#include "taxolearn/recursive/fit.hpp"
#include "taxolearn/recursive/predict.hpp"

namespace taxolearn::python {
namespace {

/// Columns one after the other: offsets, indices, values.
py::tuple as_columns(std::vector<SparseColumn>&& columns) {
  py::array_t<std::int64_t> offsets(static_cast<py::ssize_t>(columns.size() + 1));
  std::int64_t* const offset = offsets.mutable_data();
  offset[0] = 0;
  for (std::size_t k = 0; k < columns.size(); ++k) {
    offset[k + 1] = offset[k] + static_cast<std::int64_t>(columns[k].indices.size());
  }
  py::array_t<std::int32_t> indices(offset[columns.size()]);
  py::array_t<double> values(offset[columns.size()]);
  for (std::size_t k = 0; k < columns.size(); ++k) {
    const SparseColumn column = std::move(columns[k]);
    std::copy(column.indices.begin(), column.indices.end(), indices.mutable_data() + offset[k]);
    std::copy(column.values.begin(), column.values.end(), values.mutable_data() + offset[k]);
  }
  columns.clear();
  return py::make_tuple(offsets, indices, values);
}

/// The same backwards.
std::vector<SparseColumn> from_columns(const py::tuple& parts) {
  require(parts.size() == 3, "start has ", parts.size(), " parts, expected offsets, rows and values");
  const py::array offsets = parts[0], indices = parts[1], values = parts[2];
  require(offsets.size() >= 1 && indices.size() == values.size(), "start has ", indices.size(), " rows and ",
          values.size(), " values, expected as many");
  const auto* const offset = as_vector<std::int64_t>("start: offsets", offsets, offsets.size());
  const auto* const index = as_vector<std::int32_t>("start: rows", indices, indices.size());
  const auto* const value = as_vector<double>("start: values", values, values.size());
  std::vector<SparseColumn> out;
  for (py::ssize_t k = 0; k + 1 < offsets.size(); ++k) {
    require(offset[k] >= 0 && offset[k] <= offset[k + 1] && offset[k + 1] <= indices.size(), "start: offsets go from ",
            offset[k], " to ", offset[k + 1], ", expected numbers that never fall, up to ", indices.size());
    out.push_back({{index + offset[k], index + offset[k + 1]}, {value + offset[k], value + offset[k + 1]}});
  }
  return out;
}

/// Offsets, columns, values and the nodes of the classes.
NodePrecision as_precision(const py::tuple& parts) {
  require(parts.size() == 4, "graph has ", parts.size(), " parts, expected offsets, columns, values and nodes");
  const auto copy = [](const char* name, const py::array& from, auto& to) {
    using T = typename std::decay_t<decltype(to)>::value_type;
    const T* const data = as_vector<T>(name, from, from.size());
    to.assign(data, data + from.size());
  };
  NodePrecision out;
  copy("graph: offsets", parts[0], out.offsets);
  copy("graph: columns", parts[1], out.columns);
  copy("graph: values", parts[2], out.values);
  copy("graph: nodes", parts[3], out.class_nodes);
  require(!out.offsets.empty(), "graph: there are no offsets");
  return out;
}

std::unique_ptr<Taxonomy> taxonomy_of(const std::optional<std::vector<Index>>& parents) {
  return parents ? std::make_unique<Taxonomy>(*parents) : nullptr;
}

RecursiveResult fit_problem(const py::object& X, const py::array& label_offsets, const py::array& labels,
                            Index n_classes, const std::optional<std::vector<Index>>& parents,
                            const std::optional<py::tuple>& graph, std::vector<double> variances, Hinge loss, double C,
                            double bias, const py::object& sample_weight, std::vector<double> positive_weights,
                            std::vector<double> negative_weights, const RecursiveSettings& settings,
                            const std::optional<py::tuple>& start, int n_threads, const py::object& progress) {
  const Input input = as_input(X);
  const Index n = input_rows(input.view);
  const std::unique_ptr<Taxonomy> taxonomy = taxonomy_of(parents);
  RecursiveProblem problem;
  problem.X = input.view;
  problem.classes = n_classes;
  problem.label_offsets = as_vector<std::int64_t>("label_offsets", label_offsets, n + 1);
  problem.labels = as_vector<std::int32_t>("labels", labels, labels.size());
  require(problem.label_offsets[n] <= labels.size(), "label_offsets ends at ", problem.label_offsets[n],
          " but there are ", labels.size(), " labels");
  problem.taxonomy = taxonomy.get();
  NodePrecision precision;
  if (graph) {
    precision = as_precision(*graph);
    problem.graph = &precision;
  }
  problem.variances = std::move(variances);
  problem.loss = loss;
  problem.cost = C;
  problem.bias = bias;
  problem.row_weights = as_vector<double>("sample_weight", sample_weight, n);
  problem.positive_weights = std::move(positive_weights);
  problem.negative_weights = std::move(negative_weights);
  std::vector<SparseColumn> duals;
  if (start) duals = from_columns(*start);
  RecursiveResult result;
  run(n_threads, progress, [&](const Execution& execution) {
    result = fit_recursive(problem, settings, start ? &duals : nullptr, execution);
  });
  return result;
}

/// Weights of nodes by feature, with the arrays and the tree that they look at.
struct HeldWeights {
  Input matrix;
  py::array_t<double> intercepts;
  std::shared_ptr<Taxonomy> taxonomy;

  NodeWeights view() const {
    const auto* const W = std::get_if<SparseView<double, std::int64_t>>(&matrix.view);
    require(W != nullptr, "weights must be a CSR matrix of float64 with int64 indices");
    return {*W, as_vector<double>("intercepts", intercepts, W->cols), taxonomy.get()};
  }
};

py::array_t<double> scores(const py::object& X, const HeldWeights& weights, int n_threads) {
  const Input input = as_input(X);
  const NodeWeights view = weights.view();
  const Index classes = view.taxonomy == nullptr ? view.by_feature.cols : view.taxonomy->classes();
  py::array_t<double> out({input_rows(input.view), classes});
  const DenseView<double> to(out.mutable_data(), out.shape(0), out.shape(1));
  run(n_threads, py::none(), [&](const Execution& execution) { recursive_scores(input.view, view, to, execution); });
  return out;
}

py::tuple top(const py::object& X, const HeldWeights& weights, Index k, int n_threads) {
  const Input input = as_input(X);
  const NodeWeights view = weights.view();
  require(k >= 1, "k is ", k, ", expected at least 1");
  py::array_t<std::int32_t> classes({input_rows(input.view), k});
  py::array_t<double> values({input_rows(input.view), k});
  const DenseView<std::int32_t> to(classes.mutable_data(), classes.shape(0), classes.shape(1));
  const DenseView<double> beside(values.mutable_data(), values.shape(0), values.shape(1));
  run(n_threads, py::none(),
      [&](const Execution& execution) { recursive_top(input.view, view, to, beside, execution); });
  return py::make_tuple(classes, values);
}

void bind_settings_of(py::module_& module) {
  py::native_enum<Hinge>(module, "Hinge", "enum.Enum", "The loss of one class against the rest.")
      .value("hinge", Hinge::hinge)
      .value("squared_hinge", Hinge::squared)
      .finalize();
  py::native_enum<RecursiveMethod>(module, "RecursiveMethod", "enum.Enum", "The solver of recursive regularization.")
      .value("joint", RecursiveMethod::joint)
      .value("alternating", RecursiveMethod::alternating)
      .finalize();
  const RecursiveSettings defaults;
  py::class_<RecursiveSettings>(module, "RecursiveSettings", py::module_local(),
                                "How recursive regularization is solved.")
      .def(py::init([](RecursiveMethod method, double tol, int max_iter, std::uint64_t seed) {
             return RecursiveSettings{method, tol, max_iter, seed};
           }),
           py::kw_only(), py::arg("method") = defaults.method, py::arg("tol") = defaults.tolerance,
           py::arg("max_iter") = defaults.max_iterations, py::arg("seed") = defaults.seed)
      .def_readonly("method", &RecursiveSettings::method)
      .def_readonly("tol", &RecursiveSettings::tolerance)
      .def_readonly("max_iter", &RecursiveSettings::max_iterations)
      .def_readonly("seed", &RecursiveSettings::seed);
}

}  // namespace

void bind_recursive(py::module_& module) {
  bind_settings_of(module);
  py::class_<RecursiveResult>(module, "RecursiveResult", py::module_local(),
                              "How recursive regularization went, and what it found.")
      .def_readonly("status", &RecursiveResult::status)
      .def_readonly("iterations", &RecursiveResult::iterations)
      .def_readonly("passes", &RecursiveResult::passes)
      .def_readonly("objective", &RecursiveResult::objective)
      .def_readonly("gap", &RecursiveResult::gap)
      .def_readonly("relative_gap", &RecursiveResult::relative_gap)
      .def_readonly("seconds", &RecursiveResult::seconds)
      .def(
          "take_weights", [](RecursiveResult& self) { return as_columns(std::move(self.weights)); },
          "Hands over offsets, features and values of w_n - w_parent(n), node after node; the last feature is the "
          "bias.")
      .def(
          "take_duals", [](RecursiveResult& self) { return as_columns(std::move(self.duals)); },
          "Hands over offsets, rows and values of the dual variables, class after class.");
  module.def("fit_recursive", &fit_problem, "Fits and certifies.", py::kw_only(), py::arg("X"),
             py::arg("label_offsets"), py::arg("labels"), py::arg("n_classes"), py::arg("parents") = py::none(),
             py::arg("graph") = py::none(), py::arg("variances") = std::vector<double>(),
             py::arg("loss") = Hinge::hinge, py::arg("C") = 1.0, py::arg("bias") = 1.0,
             py::arg("sample_weight") = py::none(), py::arg("positive_weights") = std::vector<double>(),
             py::arg("negative_weights") = std::vector<double>(), py::arg("settings") = RecursiveSettings{},
             py::arg("start") = py::none(), py::arg("n_threads") = 1, py::arg("progress") = py::none());
  py::class_<HeldWeights>(module, "NodeWeights", py::module_local(),
                          "Weights w_n - w_parent(n), by feature and node, and intercepts in the same way.")
      .def(py::init([](const py::object& weights, py::array_t<double> intercepts,
                       const std::optional<std::vector<Index>>& parents) {
             HeldWeights held{as_input(weights), std::move(intercepts), taxonomy_of(parents)};
             held.view();
             return held;
           }),
           py::kw_only(), py::arg("weights"), py::arg("intercepts"), py::arg("parents") = py::none())
      .def(
          "scores",
          [](const HeldWeights& self, const py::object& X, int n_threads) { return scores(X, self, n_threads); },
          "Scores of all classes.", py::arg("X"), py::arg("n_threads") = 1)
      .def(
          "top",
          [](const HeldWeights& self, const py::object& X, Index k, int n_threads) {
            return top(X, self, k, n_threads);
          },
          "Classes with the highest scores, the best first, and these scores.", py::arg("X"), py::arg("k"),
          py::arg("n_threads") = 1);
}

}  // namespace taxolearn::python
