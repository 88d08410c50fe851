#include <pybind11/stl.h>

#include "arrays.hpp"
#include "choice.hpp"
#include "execution.hpp"
#include "kernel_settings.hpp"
#include "targets.hpp"
#include "taxolearn/select/criterion.hpp"

namespace taxolearn::python {
namespace {

const std::map<std::string, Method> methods{{"lbfgs", Method::lbfgs}, {"exact", Method::exact}};
const std::map<std::string, Strategy> strategies{
    {"auto", Strategy::automatic}, {"stacked", Strategy::stacked}, {"shuffled", Strategy::shuffled}};
const std::map<std::string, Precision> precisions{
    {"auto", Precision::automatic}, {"single", Precision::single}, {"double", Precision::double_}};
const std::map<std::string, State> states{
    {"auto", State::automatic}, {"coefficients", State::coefficients}, {"weights", State::weights}};

/// Cross-validation together with the arrays it looks at.
struct HeldCrossValidation {
  Input input;
  HeldSoftmax softmax;
  int threads;
  std::unique_ptr<CrossValidation> inner;

  HeldCrossValidation(const py::object& X, const py::array& targets, Index n_classes, const py::object& sample_weight,
                      const std::vector<Index>& fold_of, Index n_folds, int n_threads)
      : input(as_input(X)), softmax(targets, n_classes, sample_weight), threads(n_threads) {
    inner = std::make_unique<CrossValidation>(input.view, *softmax.likelihood, Folds{fold_of, n_folds});
  }
};

py::array_t<double> as_array(const std::vector<double>& values) {
  return py::array_t<double>(static_cast<py::ssize_t>(values.size()), values.data());
}

py::dict as_dict(const Criterion& criterion, bool with_gradient) {
  py::dict out;
  out["value"] = criterion.value;
  out["plain_value"] = criterion.plain_value;
  out["gradient"] = py::none();
  if (with_gradient) {
    py::list kernels;
    for (const auto& each : criterion.kernel_gradient) kernels.append(as_array(each));
    py::dict gradient;
    gradient["kernels"] = kernels;
    gradient["functions"] = as_array(criterion.function_gradient);
    gradient["sigma2"] = criterion.sigma2_gradient;
    out["gradient"] = gradient;
  }
  out["converged"] = criterion.converged;
  out["gap"] = criterion.gap;
  out["adjoint_gap"] = criterion.adjoint_gap;
  out["products"] = criterion.products;
  out["iterations"] = criterion.iterations;
  py::dict timings;
  timings["fits"] = criterion.fit_seconds;
  timings["systems"] = criterion.adjoint_seconds;
  timings["gradient"] = criterion.gradient_seconds;
  timings["products"] = criterion.counters.timings.products;
  timings["likelihood"] = criterion.counters.timings.likelihood;
  timings["vectors"] = criterion.counters.timings.vectors;
  timings["total"] = criterion.total_seconds;
  out["timings"] = timings;
  out["algorithm"] = criterion.counters.algorithm;
  out["reason"] = criterion.counters.reason;
  out["strategy"] = strategy_name(criterion.strategy);
  out["precision"] = criterion.counters.precision;
  out["state"] = criterion.counters.state;
  return out;
}

py::dict evaluate(HeldCrossValidation& self, const std::vector<std::shared_ptr<const Kernel>>& kernels,
                  const std::vector<Index>& kernel_of, const Coupling& coupling, double sigma2, double tol,
                  double adjoint_tol, int max_iter, bool gradient, bool kernel_gradient, const std::string& method,
                  const std::string& strategy, const std::string& precision, const std::string& state,
                  const std::string& algorithm, double memory_limit, Index rank, double rank_tolerance,
                  const py::object& progress) {
  Candidate candidate;
  candidate.kernels = kernels;
  candidate.kernel_of = kernel_of;
  candidate.coupling = &coupling;
  candidate.sigma2 = sigma2;
  CriterionSettings settings;
  settings.tolerance = tol;
  settings.adjoint_tolerance = adjoint_tol;
  settings.max_iterations = max_iter;
  settings.gradient = gradient;
  settings.kernel_gradient = kernel_gradient;
  settings.method = choose("method", method, methods);
  settings.strategy = choose("strategy", strategy, strategies);
  settings.precision = choose("precision", precision, precisions);
  settings.state = choose("state", state, states);
  settings.kernels = as_kernel_settings(algorithm, rank, rank_tolerance, memory_limit);
  Criterion criterion;
  run(self.threads, progress,
      [&](const Execution& execution) { criterion = self.inner->evaluate(candidate, settings, execution); });
  return as_dict(criterion, gradient);
}

py::object state(const HeldCrossValidation& self) {
  const InnerState& accepted = self.inner->accepted();
  if (accepted.fits.empty()) return py::none();
  py::dict out;
  out["fits"] = py::array_t<float>(static_cast<py::ssize_t>(accepted.fits.size()), accepted.fits.data());
  out["adjoints"] = py::array_t<float>(static_cast<py::ssize_t>(accepted.adjoints.size()), accepted.adjoints.data());
  return out;
}

void set_state(HeldCrossValidation& self, const py::object& state) {
  InnerState restored;
  if (!state.is_none()) {
    const auto read = [&](const char* name) {
      const auto array = py::cast<py::array_t<float, py::array::c_style>>(state[name]);
      return Buffer<float>(array.data(), array.data() + array.size());
    };
    restored.fits = read("fits");
    restored.adjoints = read("adjoints");
  }
  self.inner->restore(std::move(restored));
}

}  // namespace

void bind_select(py::module_& module) {
  using Held = HeldCrossValidation;
  py::class_<Held>(module, "CrossValidation", py::module_local(), "The cross-validation criterion and its gradient.")
      .def(py::init<py::object, py::array, Index, py::object, std::vector<Index>, Index, int>(), py::kw_only(),
           py::arg("X"), py::arg("targets"), py::arg("n_classes"), py::arg("sample_weight") = py::none(),
           py::arg("fold_of"), py::arg("n_folds"), py::arg("n_threads") = 1)
      .def("evaluate", &evaluate, py::kw_only(), py::arg("kernels"), py::arg("kernel_of") = std::vector<Index>(),
           py::arg("coupling"), py::arg("sigma2"), py::arg("tol") = 1e-4, py::arg("adjoint_tol") = 1e-4,
           py::arg("max_iter") = 1000, py::arg("gradient") = true, py::arg("kernel_gradient") = true,
           py::arg("method") = "lbfgs", py::arg("strategy") = "auto", py::arg("precision") = "auto",
           py::arg("state") = "auto", py::arg("algorithm") = "auto", py::arg("memory_limit") = 4e9, py::arg("rank") = 0,
           py::arg("rank_tolerance") = 1e-3, py::arg("progress") = py::none())
      .def("accept", [](Held& self) { self.inner->accept(); })
      .def("state", &state)
      .def("set_state", &set_state, py::arg("state"));
}

}  // namespace taxolearn::python
