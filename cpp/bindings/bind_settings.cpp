#include <pybind11/native_enum.h>
#include <pybind11/stl.h>

#include "arrays.hpp"
#include "taxolearn/fit/settings.hpp"
#include "taxolearn/select/criterion.hpp"

namespace taxolearn::python {
namespace {

void bind_enumerations(py::module_& module) {
  py::native_enum<Method>(module, "Method", "enum.Enum", "The solver of a fit.")
      .value("auto", Method::automatic)
      .value("lbfgs", Method::lbfgs)
      .value("ncg", Method::nonlinear_cg)
      .value("newton", Method::newton)
      .value("exact", Method::exact)
      .finalize();
  py::native_enum<Space>(module, "Space", "enum.Enum", "The vectors that a solver works on.")
      .value("auto", Space::automatic)
      .value("coefficients", Space::coefficients)
      .value("weights", Space::weights)
      .finalize();
  py::native_enum<Precision>(module, "Precision", "enum.Enum", "Precision of the products.")
      .value("auto", Precision::automatic)
      .value("single", Precision::single)
      .value("double", Precision::double_)
      .finalize();
  py::native_enum<Status>(module, "Status", "enum.Enum", "How a fit ended.")
      .value("converged", Status::converged)
      .value("max_iter", Status::max_iter)
      .value("stalled", Status::stalled)
      .finalize();
  py::native_enum<KernelAlgorithm>(module, "KernelAlgorithm", "enum.Enum",
                                   "How products with kernel matrices are done.")
      .value("auto", KernelAlgorithm::automatic)
      .value("gram", KernelAlgorithm::gram)
      .value("tiled", KernelAlgorithm::tiled)
      .value("low_rank", KernelAlgorithm::low_rank)
      .finalize();
  py::native_enum<Strategy>(module, "Strategy", "enum.Enum", "How folds share products.")
      .value("auto", Strategy::automatic)
      .value("stacked", Strategy::stacked)
      .value("shuffled", Strategy::shuffled)
      .finalize();
}

void bind_kernel_settings(py::module_& module) {
  const KernelSettings defaults;
  py::class_<KernelSettings>(module, "KernelSettings", py::module_local(),
                             "How products with kernel matrices are done.")
      .def(py::init(&make_kernel_settings), py::kw_only(), py::arg("algorithm") = defaults.algorithm,
           py::arg("memory_limit") = defaults.memory_limit, py::arg("rank") = py::none(),
           py::arg("rank_tolerance") = py::none())
      .def_readonly("algorithm", &KernelSettings::algorithm)
      .def_readonly("memory_limit", &KernelSettings::memory_limit)
      .def_readonly("rank", &KernelSettings::rank)
      .def_readonly("rank_tolerance", &KernelSettings::tolerance);
}

void bind_fit_settings(py::module_& module) {
  const FitSettings defaults;
  py::class_<FitSettings>(module, "FitSettings", py::module_local(), "How a fit is done.")
      .def(py::init([](Method method, Space space, Precision precision, double tol, int max_iter, double memory_limit,
                       bool exact_fallback, bool keep_point) {
             FitSettings settings;
             settings.method = method;
             settings.space = space;
             settings.precision = precision;
             settings.tolerance = tol;
             settings.max_iterations = max_iter;
             settings.memory_limit = memory_limit;
             settings.exact_fallback = exact_fallback;
             settings.keep_point = keep_point;
             return settings;
           }),
           py::kw_only(), py::arg("method") = defaults.method, py::arg("space") = defaults.space,
           py::arg("precision") = defaults.precision, py::arg("tol") = defaults.tolerance,
           py::arg("max_iter") = defaults.max_iterations, py::arg("memory_limit") = defaults.memory_limit,
           py::arg("exact_fallback") = defaults.exact_fallback, py::arg("keep_point") = defaults.keep_point)
      .def_readwrite("method", &FitSettings::method)
      .def_readwrite("space", &FitSettings::space)
      .def_readwrite("precision", &FitSettings::precision)
      .def_readwrite("tol", &FitSettings::tolerance)
      .def_readwrite("max_iter", &FitSettings::max_iterations)
      .def_readwrite("memory_limit", &FitSettings::memory_limit)
      .def_readwrite("keep_point", &FitSettings::keep_point)
      .def_readwrite("exact_fallback", &FitSettings::exact_fallback)
      .def("__copy__", [](const FitSettings& self) { return self; });
}

void bind_criterion_settings(py::module_& module) {
  const CriterionSettings defaults;
  py::class_<CriterionSettings>(module, "CriterionSettings", py::module_local(), "How the criterion is evaluated.")
      .def(py::init([](double tol, double adjoint_tol, int max_iter, bool kernel_gradient, Method method,
                       Strategy strategy, Precision precision, double memory_limit) {
             CriterionSettings settings;
             settings.tolerance = tol;
             settings.adjoint_tolerance = adjoint_tol;
             settings.max_iterations = max_iter;
             settings.kernel_gradient = kernel_gradient;
             settings.method = method;
             settings.strategy = strategy;
             settings.precision = precision;
             settings.memory_limit = memory_limit;
             return settings;
           }),
           py::kw_only(), py::arg("tol") = defaults.tolerance, py::arg("adjoint_tol") = defaults.adjoint_tolerance,
           py::arg("max_iter") = defaults.max_iterations, py::arg("kernel_gradient") = defaults.kernel_gradient,
           py::arg("method") = defaults.method, py::arg("strategy") = defaults.strategy,
           py::arg("precision") = defaults.precision, py::arg("memory_limit") = defaults.memory_limit)
      .def_readwrite("tol", &CriterionSettings::tolerance)
      .def_readwrite("adjoint_tol", &CriterionSettings::adjoint_tolerance)
      .def_readwrite("max_iter", &CriterionSettings::max_iterations)
      .def_readwrite("gradient", &CriterionSettings::gradient)
      .def_readwrite("keep_predictors", &CriterionSettings::keep_predictors)
      .def_readwrite("kernel_gradient", &CriterionSettings::kernel_gradient)
      .def_readwrite("temperature", &CriterionSettings::temperature)
      .def_readwrite("learn_temperature", &CriterionSettings::learn_temperature)
      .def_readwrite("method", &CriterionSettings::method)
      .def_readwrite("strategy", &CriterionSettings::strategy)
      .def_readwrite("precision", &CriterionSettings::precision)
      .def_readwrite("memory_limit", &CriterionSettings::memory_limit)
      .def("__copy__", [](const CriterionSettings& self) { return self; });
}

}  // namespace

void bind_settings(py::module_& module) {
  bind_enumerations(module);
  bind_kernel_settings(module);
  bind_fit_settings(module);
  bind_criterion_settings(module);
}

}  // namespace taxolearn::python
