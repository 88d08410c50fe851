#include <pybind11/stl.h>

#include "arrays.hpp"
#include "execution.hpp"
#include "held_likelihood.hpp"
#include "prior_values.hpp"
#include "taxolearn/fit/choose.hpp"
#include "taxolearn/fit/fit.hpp"
#include "taxolearn/fit/predict.hpp"

namespace taxolearn::python {
namespace {

using Kernels = std::vector<std::shared_ptr<Kernel>>;

void bind_prior(py::module_& module) {
  py::class_<PriorValues>(module, "Prior", py::module_local(), "The prior of the class functions.")
      .def(py::init([](const Kernels& kernels, std::vector<Index> kernel_of, std::shared_ptr<Coupling> coupling,
                       double intercept_variance) {
             return PriorValues{
                 {kernels.begin(), kernels.end()}, std::move(kernel_of), std::move(coupling), intercept_variance};
           }),
           py::kw_only(), py::arg("kernels"), py::arg("kernel_of") = std::vector<Index>(),
           py::arg("coupling") = py::none(), py::arg("intercept_variance"))
      // Python knows no constants; nothing that it can call changes a kernel or a coupling.
      .def_property_readonly("kernels",
                             [](const PriorValues& self) {
                               Kernels out;
                               for (const auto& each : self.kernels)
                                 out.push_back(std::const_pointer_cast<Kernel>(each));
                               return out;
                             })
      .def_readonly("kernel_of", &PriorValues::kernel_of)
      .def_property_readonly("coupling",
                             [](const PriorValues& self) { return std::const_pointer_cast<Coupling>(self.coupling); })
      .def_readonly("intercept_variance", &PriorValues::intercept_variance);
}

/// Where to begin, as arrays; each may be None.
struct HeldStart {
  py::object weights = py::none();
  py::object predictors = py::none();
  py::object point = py::none();

  Start view(const Problem& problem, const FitSettings& settings) const {
    const Index n = input_rows(problem.X);
    const Index d = input_features(problem.X);
    const Index outputs = problem.likelihood->outputs();
    Start start;
    start.weights = as_vector<double>("start.weights", weights, (d + 1) * outputs);
    start.predictors = as_vector<double>("start.predictors", predictors, n * outputs);
    if (!point.is_none())
      start.point = as_vector<double>("start.point", point, point_size(problem, choose(problem, settings).space));
    return start;
  }
};

FitResult fit_problem(const py::object& X, const HeldLikelihood& likelihood, const PriorValues& prior,
                      const FitSettings& settings, const KernelSettings& kernels, const HeldStart& start, int n_threads,
                      const py::object& progress) {
  const Input input = as_input(X);
  const KernelPrior over = prior.over(input.view, kernels);
  const Problem problem{input.view, likelihood.inner.get(), over.get()};
  const Start begin = start.view(problem, settings);
  FitResult result;
  run(n_threads, progress, [&](const Execution& execution) { result = fit(problem, settings, begin, execution); });
  return result;
}

FitPlan plan(const py::object& X, const HeldLikelihood& likelihood, const PriorValues& prior,
             const FitSettings& settings, const KernelSettings& kernels) {
  const Input input = as_input(X);
  const KernelPrior over = prior.over(input.view, kernels);
  return choose(Problem{input.view, likelihood.inner.get(), over.get()}, settings);
}

void bind_result(py::module_& module) {
  py::class_<Timings>(module, "Timings", py::module_local(), "Seconds by phase.")
      .def_readonly("setup", &Timings::setup)
      .def_readonly("products", &Timings::products)
      .def_readonly("likelihood", &Timings::likelihood)
      .def_readonly("vectors", &Timings::vectors)
      .def_readonly("certificate", &Timings::certificate)
      .def_readonly("total", &Timings::total);
  py::class_<FitPlan>(module, "FitPlan", py::module_local(), "What a fit does where the settings leave it open.")
      .def_readonly("method", &FitPlan::method)
      .def_readonly("space", &FitPlan::space)
      .def_readonly("precision", &FitPlan::precision)
      .def_readonly("reason", &FitPlan::reason);
  py::class_<FitResult>(module, "FitResult", py::module_local(), "How a fit went, and what it found.")
      .def_readonly("status", &FitResult::status)
      .def_readonly("iterations", &FitResult::iterations)
      .def_readonly("products", &FitResult::products)
      .def_readonly("objective", &FitResult::objective)
      .def_readonly("gap", &FitResult::gap)
      .def_readonly("relative_gap", &FitResult::relative_gap)
      .def_readonly("method", &FitResult::method)
      .def_readonly("algorithm", &FitResult::algorithm)
      .def_readonly("reason", &FitResult::reason)
      .def_readonly("space", &FitResult::space)
      .def_readonly("precision", &FitResult::precision)
      .def_readonly("kernel_bytes", &FitResult::kernel_bytes)
      .def_readonly("ranks", &FitResult::ranks)
      .def_readonly("timings", &FitResult::timings)
      .def_property_readonly("intercepts",
                             [](const FitResult& self) {
                               return py::array_t<double>(static_cast<py::ssize_t>(self.intercepts.size()),
                                                          self.intercepts.data());
                             })
      // Arrays of the size of the model are handed over, not copied: once each.
      .def(
          "take_weights", [](FitResult& self) { return as_array(std::move(self.weights)); },
          "Hands over the weights (n_features, n_outputs) of the linear kernel; empty for others.")
      .def(
          "take_expansions",
          [](FitResult& self) {
            py::list out;
            for (Expansion& each : self.expansions)
              out.append(py::make_tuple(each.basis, as_array(std::move(each.coefficients)),
                                        as_array(std::move(each.weights))));
            self.expansions.clear();
            return out;
          },
          "Hands over, per kernel, the rows of its basis (empty: all), their coefficients, and weights of linear "
          "blocks.")
      .def(
          "take_point", [](FitResult& self) { return as_array(std::move(self.point)); },
          "Hands over the point that the solver came to, if the settings kept it.");
}

template <class U>
py::array_t<double> predict_weights(const Input& input, DenseView<const U> W, const py::object& intercepts, Link link,
                                    double temperature, Output output, int n_threads) {
  const double* const b = as_vector<double>("intercepts", intercepts, W.cols);
  require(b != nullptr, "intercepts is None, expected an array of ", W.cols, " elements");
  py::array_t<double> out({input_rows(input.view), W.cols});
  const DenseView<double> to(out.mutable_data(), out.shape(0), out.shape(1));
  run(n_threads, py::none(),
      [&](const Execution& execution) { predict(input.view, W, b, link, output, to, execution, temperature); });
  return out;
}

py::array_t<double> predict_linear(const py::object& X, const py::array& weights, const py::object& intercepts,
                                   Link link, double temperature, Output output, int n_threads) {
  const Input input = as_input(X);
  if (py::isinstance<py::array_t<float>>(weights))
    return predict_weights(input, as_matrix<float>("weights", weights), intercepts, link, temperature, output,
                           n_threads);
  return predict_weights(input, as_matrix<double>("weights", weights), intercepts, link, temperature, output,
                         n_threads);
}

/// A kernel expansion together with the arrays it looks at.
struct HeldTerm {
  std::shared_ptr<const Kernel> kernel;
  Input basis;
  py::array coefficients;
  py::object weights;
};

py::array_t<double> predict_kernels(const py::object& X, const std::vector<HeldTerm>& held,
                                    const std::vector<Index>& kernel_of, const Coupling* coupling,
                                    const py::array& intercepts, Link link, double temperature, Output output,
                                    int n_threads) {
  const Input input = as_input(X);
  std::vector<Term> terms;
  for (const HeldTerm& each : held)
    terms.push_back({each.kernel, each.basis.view, as_matrix<double>("coefficients", each.coefficients),
                     each.weights.is_none() ? DenseView<const double>()
                                            : as_matrix<double>("weights", py::cast<py::array>(each.weights))});
  const Index outputs = intercepts.size();
  const double* const b = as_vector<double>("intercepts", intercepts, outputs);
  py::array_t<double> out({input_rows(input.view), outputs});
  const DenseView<double> to(out.mutable_data(), out.shape(0), out.shape(1));
  run(n_threads, py::none(), [&](const Execution& execution) {
    predict(input.view, terms, kernel_of, coupling, b, link, output, to, execution, temperature);
  });
  return out;
}

void bind_predict(py::module_& module) {
  module.def("predict_linear", &predict_linear, "Predictors, probabilities or their logarithms.", py::kw_only(),
             py::arg("X"), py::arg("weights"), py::arg("intercepts"), py::arg("link"), py::arg("temperature") = 1.0,
             py::arg("output"), py::arg("n_threads") = 1);
  py::class_<HeldTerm>(module, "Term", py::module_local(), "A kernel, the inputs of its basis, and coefficients.")
      .def(py::init(
               [](std::shared_ptr<Kernel> kernel, const py::object& basis, py::array coefficients, py::object weights) {
                 return HeldTerm{std::move(kernel), as_input(basis), std::move(coefficients), std::move(weights)};
               }),
           py::kw_only(), py::arg("kernel"), py::arg("basis"), py::arg("coefficients"),
           py::arg("weights") = py::none());
  module.def("predict_kernels", &predict_kernels, "The same from kernel expansions.", py::kw_only(), py::arg("X"),
             py::arg("terms"), py::arg("kernel_of") = std::vector<Index>(), py::arg("coupling") = py::none(),
             py::arg("intercepts"), py::arg("link"), py::arg("temperature") = 1.0, py::arg("output"),
             py::arg("n_threads") = 1);
}

}  // namespace

void bind_fit(py::module_& module) {
  bind_prior(module);
  bind_result(module);
  py::class_<HeldStart>(module, "FitStart", py::module_local(), "Where a fit begins; at zero where nothing is given.")
      .def(py::init([](py::object weights, py::object predictors, py::object point) {
             return HeldStart{std::move(weights), std::move(predictors), std::move(point)};
           }),
           py::kw_only(), py::arg("weights") = py::none(), py::arg("predictors") = py::none(),
           py::arg("point") = py::none());
  module.def(
      "uses_features",
      [](const PriorValues& prior, const KernelSettings& settings) { return uses_features(prior.kernels, settings); },
      "Whether the features themselves serve for the products.", py::arg("prior"), py::arg("settings"));
  module.def("plan", &plan, "What a fit would do.", py::kw_only(), py::arg("X"), py::arg("likelihood"),
             py::arg("prior"), py::arg("settings"), py::arg("kernels") = KernelSettings{});
  module.def("fit", &fit_problem, "Fits and certifies.", py::kw_only(), py::arg("X"), py::arg("likelihood"),
             py::arg("prior"), py::arg("settings"), py::arg("kernels") = KernelSettings{},
             py::arg("start") = HeldStart{}, py::arg("n_threads") = 1, py::arg("progress") = py::none());
  bind_predict(module);
}

}  // namespace taxolearn::python
