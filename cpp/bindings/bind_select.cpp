#include <pybind11/stl.h>

#include "arrays.hpp"
#include "execution.hpp"
#include "held_likelihood.hpp"
#include "prior_values.hpp"
#include "taxolearn/select/criterion.hpp"

namespace taxolearn::python {
namespace {

/// Cross-validation together with the arrays it looks at.
struct HeldCrossValidation {
  Input input;
  HeldLikelihood likelihood;
  HeldLikelihood held_out;
  int threads;
  std::unique_ptr<CrossValidation> inner;
};

py::array_t<double> as_array(const std::vector<double>& values) {
  return py::array_t<double>(static_cast<py::ssize_t>(values.size()), values.data());
}

py::array_t<float> as_array(const Buffer<float>& values) {
  return py::array_t<float>(static_cast<py::ssize_t>(values.size()), values.data());
}

Buffer<float> as_buffer(const py::array_t<float, py::array::c_style | py::array::forcecast>& array) {
  return Buffer<float>(array.data(), array.data() + array.size());
}

void bind_criterion(py::module_& module) {
  py::class_<Criterion>(module, "Criterion", py::module_local(), "The criterion at one prior, and its gradient.")
      .def_readonly("value", &Criterion::value)
      .def_readonly("plain_value", &Criterion::plain_value)
      .def_readonly("temperature", &Criterion::temperature)
      .def_readonly("temperature_gradient", &Criterion::temperature_gradient)
      .def_property_readonly("kernel_gradient",
                             [](const Criterion& self) {
                               py::list out;
                               for (const auto& each : self.kernel_gradient) out.append(as_array(each));
                               return out;
                             })
      .def_property_readonly("function_gradient",
                             [](const Criterion& self) { return as_array(self.function_gradient); })
      .def_readonly("intercept_variance_gradient", &Criterion::intercept_variance_gradient)
      .def(
          "take_predictors", [](Criterion& self) { return python::as_array(std::move(self.predictors)); },
          "Predictors of the held-out rows, n x C; only once.")
      .def_readonly("converged", &Criterion::converged)
      .def_readonly("gap", &Criterion::gap)
      .def_readonly("adjoint_gap", &Criterion::adjoint_gap)
      .def_readonly("products", &Criterion::products)
      .def_readonly("iterations", &Criterion::iterations)
      .def_readonly("strategy", &Criterion::strategy)
      .def_readonly("fit_seconds", &Criterion::fit_seconds)
      .def_readonly("adjoint_seconds", &Criterion::adjoint_seconds)
      .def_readonly("gradient_seconds", &Criterion::gradient_seconds)
      .def_readonly("total_seconds", &Criterion::total_seconds)
      .def_readonly("counters", &Criterion::counters);
}

}  // namespace

void bind_select(py::module_& module) {
  using Held = HeldCrossValidation;
  bind_criterion(module);
  py::class_<WarmStart>(module, "WarmStart", py::module_local(), "Where the fits and systems of all folds ended.")
      .def(py::init([](const py::array_t<float, py::array::c_style | py::array::forcecast>& fits,
                       const py::array_t<float, py::array::c_style | py::array::forcecast>& adjoints) {
             return WarmStart{as_buffer(fits), as_buffer(adjoints)};
           }),
           py::arg("fits"), py::arg("adjoints"))
      .def_property_readonly("fits", [](const WarmStart& self) { return as_array(self.fits); })
      .def_property_readonly("adjoints", [](const WarmStart& self) { return as_array(self.adjoints); });
  py::class_<Held>(module, "CrossValidation", py::module_local(), "The cross-validation criterion and its gradient.")
      .def(py::init([](const py::object& X, const HeldLikelihood& likelihood, std::vector<Index> fold_of, Index n_folds,
                       const HeldLikelihood* held_out, int n_threads) {
             Held held{as_input(X), likelihood, held_out == nullptr ? likelihood : *held_out, n_threads, nullptr};
             held.inner =
                 std::make_unique<CrossValidation>(held.input.view, *held.likelihood.inner,
                                                   Folds{std::move(fold_of), n_folds}, held.held_out.inner.get());
             return held;
           }),
           py::kw_only(), py::arg("X"), py::arg("likelihood"), py::arg("fold_of"), py::arg("n_folds"),
           py::arg("held_out") = py::none(), py::arg("n_threads") = 1)
      .def(
          "evaluate",
          [](Held& self, const PriorValues& prior, const CriterionSettings& settings, const KernelSettings& kernels,
             const py::object& progress) {
            const KernelPrior over = prior.over(self.input.view, kernels);
            Criterion criterion;
            run(self.threads, progress,
                [&](const Execution& execution) { criterion = self.inner->evaluate(over.get(), settings, execution); });
            return criterion;
          },
          py::arg("prior"), py::arg("settings"), py::arg("kernels") = KernelSettings{},
          py::arg("progress") = py::none())
      .def(
          "accept", [](Held& self) { self.inner->accept(); }, "Later evaluations start where the last one ended.")
      .def_property(
          "warm_start", [](const Held& self) { return self.inner->accepted(); },
          [](Held& self, WarmStart start) { self.inner->restore(std::move(start)); });
}

}  // namespace taxolearn::python
