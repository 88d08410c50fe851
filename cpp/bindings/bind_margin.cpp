#include <pybind11/native_enum.h>
#include <pybind11/stl.h>

#include "arrays.hpp"
#include "execution.hpp"
#include "taxolearn/margin/fit.hpp"
#include "taxolearn/margin/labelings.hpp"

namespace taxolearn::python {
namespace {

struct FittedMargin {
  MarginResult result;
  MarginDuals duals;
};

/// Rows one after the other: offsets, weights, losses, signs.
py::tuple as_parts(const MarginDuals& duals, Index components) {
  py::array_t<std::int64_t> offsets(static_cast<py::ssize_t>(duals.size() + 1));
  std::int64_t* const offset = offsets.mutable_data();
  offset[0] = 0;
  for (std::size_t i = 0; i < duals.size(); ++i) {
    offset[i + 1] = offset[i] + static_cast<std::int64_t>(duals[i].weights.size());
  }
  const std::int64_t count = offset[duals.size()];
  py::array_t<double> weights(count), losses(count);
  py::array_t<std::int8_t> signs({static_cast<py::ssize_t>(count), static_cast<py::ssize_t>(components)});
  for (std::size_t i = 0; i < duals.size(); ++i) {
    std::copy(duals[i].weights.begin(), duals[i].weights.end(), weights.mutable_data() + offset[i]);
    std::copy(duals[i].losses.begin(), duals[i].losses.end(), losses.mutable_data() + offset[i]);
    std::copy(duals[i].signs.begin(), duals[i].signs.end(), signs.mutable_data() + offset[i] * components);
  }
  return py::make_tuple(offsets, weights, losses, signs);
}

/// The same backwards.
MarginDuals from_parts(const py::tuple& parts, Index components) {
  require(parts.size() == 4, "start has ", parts.size(), " parts, expected offsets, weights, losses and signs");
  const py::array offsets = parts[0], weights = parts[1], losses = parts[2], signs = parts[3];
  require(offsets.size() >= 1 && weights.size() == losses.size() && signs.size() == weights.size() * components,
          "start has ", weights.size(), " weights, ", losses.size(), " losses and ", signs.size(), " signs, expected ",
          components, " signs for each weight and loss");
  const auto* const offset = as_vector<std::int64_t>("start: offsets", offsets, offsets.size());
  const auto* const weight = as_vector<double>("start: weights", weights, weights.size());
  const auto* const loss = as_vector<double>("start: losses", losses, losses.size());
  const auto* const sign = as_vector<std::int8_t>("start: signs", signs, signs.size());
  MarginDuals out;
  for (py::ssize_t i = 0; i + 1 < offsets.size(); ++i) {
    require(offset[i] >= 0 && offset[i] <= offset[i + 1] && offset[i + 1] <= weights.size(), "start: offsets go from ",
            offset[i], " to ", offset[i + 1], ", expected numbers that never fall, up to ", weights.size());
    out.push_back({{weight + offset[i], weight + offset[i + 1]},
                   {loss + offset[i], loss + offset[i + 1]},
                   {sign + offset[i] * components, sign + offset[i + 1] * components}});
  }
  return out;
}

FittedMargin fit_problem(const py::object& X, const std::vector<std::int32_t>& parents, const py::array& label_offsets,
                         const py::array& labels, MarginLoss loss, std::vector<double> scales, double C, double bias,
                         const std::shared_ptr<Kernel>& kernel, const py::object& sample_weight, double memory_limit,
                         double tol, int max_iter, std::uint64_t seed, const std::optional<py::tuple>& start,
                         int n_threads, const py::object& progress) {
  const Input input = as_input(X);
  const Index n = input_rows(input.view);
  const LabelForest forest(parents);
  MarginProblem problem;
  problem.X = input.view;
  problem.kernel = kernel.get();
  problem.forest = &forest;
  problem.label_offsets = as_vector<std::int64_t>("label_offsets", label_offsets, n + 1);
  problem.labels = as_vector<std::int32_t>("labels", labels, labels.size());
  require(problem.label_offsets[0] == 0 && problem.label_offsets[n] <= labels.size(), "label_offsets run from ",
          problem.label_offsets[0], " to ", problem.label_offsets[n], " but there are ", labels.size(), " labels");
  problem.loss = loss;
  problem.scales = std::move(scales);
  problem.cost = C;
  problem.bias = bias;
  problem.row_weights = as_vector<double>("sample_weight", sample_weight, n);
  problem.memory_limit = memory_limit;
  FittedMargin fitted;
  if (start) fitted.duals = from_parts(*start, forest.components());
  run(n_threads, progress, [&](const Execution& execution) {
    fitted.result = fit_margin(problem, {tol, max_iter, seed}, fitted.duals, execution);
  });
  return fitted;
}

py::array_t<double> marginals(const py::array& gradients, const std::vector<std::int32_t>& parents, int n_threads) {
  const DenseView<const double> from = as_matrix<double>("gradients", gradients);
  const LabelForest forest(parents);
  py::array_t<double> out({from.rows, forest.nodes()});
  const DenseView<double> to(out.mutable_data(), from.rows, forest.nodes());
  run(n_threads, py::none(), [&](const Execution& execution) { max_marginals(forest, from, to, execution); });
  return out;
}

}  // namespace

void bind_margin(py::module_& module) {
  py::native_enum<MarginLoss>(module, "MarginLoss", "enum.Enum", "What a wrong labeling loses.")
      .value("zero_one", MarginLoss::zero_one)
      .value("hamming", MarginLoss::hamming)
      .value("hierarchical", MarginLoss::hierarchical)
      .finalize();
  py::class_<FittedMargin>(module, "MarginResult", py::module_local(), "How a max-margin fit went, and what it found.")
      .def_property_readonly("status", [](const FittedMargin& self) { return self.result.run.status; })
      .def_property_readonly("iterations", [](const FittedMargin& self) { return self.result.run.iterations; })
      .def_property_readonly("passes", [](const FittedMargin& self) { return self.result.run.passes; })
      .def_property_readonly("objective", [](const FittedMargin& self) { return self.result.run.objective; })
      .def_property_readonly("gap", [](const FittedMargin& self) { return self.result.run.gap; })
      .def_property_readonly("seconds", [](const FittedMargin& self) { return self.result.seconds; })
      .def_property_readonly("intercepts",
                             [](const FittedMargin& self) {
                               const std::vector<double>& values = self.result.intercepts;
                               return py::array_t<double>(static_cast<py::ssize_t>(values.size()), values.data());
                             })
      .def(
          "take_weights", [](FittedMargin& self) { return as_array(std::move(self.result.weights)); },
          "Hands over the weights of a linear kernel: features x components.")
      .def(
          "take_multipliers", [](FittedMargin& self) { return as_array(std::move(self.result.multipliers)); },
          "Hands over the multipliers of another kernel: rows x components.")
      .def(
          "duals",
          [](const FittedMargin& self) {
            return as_parts(self.duals, static_cast<Index>(self.result.intercepts.size()));
          },
          "Offsets of the rows, and weights, losses and signs of their labelings.");
  module.def("fit_margin", &fit_problem, "Fits and certifies.", py::kw_only(), py::arg("X"), py::arg("parents"),
             py::arg("label_offsets"), py::arg("labels"), py::arg("loss") = MarginLoss::hamming,
             py::arg("scales") = std::vector<double>(), py::arg("C") = 1.0, py::arg("bias") = 1.0,
             py::arg("kernel") = py::none(), py::arg("sample_weight") = py::none(), py::arg("memory_limit") = 4e9,
             py::arg("tol") = 1e-2, py::arg("max_iter") = 10000, py::arg("seed") = 0, py::arg("start") = py::none(),
             py::arg("n_threads") = 1, py::arg("progress") = py::none());
  module.def("max_marginals", &marginals,
             "Per node, the best score of a union of partial paths with it minus the best of one without.",
             py::arg("gradients"), py::arg("parents"), py::arg("n_threads") = 1);
}

}  // namespace taxolearn::python
