#include <pybind11/stl.h>

#include "arrays.hpp"
#include "choice.hpp"
#include "execution.hpp"
#include "kernel_settings.hpp"

namespace taxolearn::python {
namespace {

/// Kernel matrices together with the arrays they look at.
template <class T>
struct HeldMatrices {
  Input input;
  int threads;
  KernelMatrices inner;

  HeldMatrices(std::vector<std::shared_ptr<const Kernel>> kernels, const py::object& X, const KernelSettings& settings,
               int threads_)
      : input(as_input(X)), threads(threads_), inner(std::move(kernels), input.view, settings) {
    run(threads, py::none(), [&](const Execution& execution) { inner.operators<T>(execution); });
  }

  Operator<T>& at(Index kernel) {
    require(kernel >= 0 && kernel < inner.count(), "kernel is ", kernel, ", expected a number below ", inner.count());
    return *inner.operators<T>(Execution{threads, nullptr})[static_cast<std::size_t>(kernel)];
  }
};

template <class T>
DenseView<T> as_output(py::array_t<T>& array) {
  return {array.mutable_data(), array.shape(0), array.shape(1)};
}

template <class T>
void bind(py::module_& module, const char* name) {
  using Held = HeldMatrices<T>;
  py::class_<Held>(module, name, py::module_local(), "Kernel matrices over the same inputs, and products with them.")
      .def(py::init([](std::vector<std::shared_ptr<const Kernel>> kernels, const py::object& X,
                       const std::string& algorithm, Index rank, double rank_tolerance, double memory_limit,
                       int n_threads) {
             return std::make_unique<Held>(
                 std::move(kernels), X, as_kernel_settings(algorithm, rank, rank_tolerance, memory_limit), n_threads);
           }),
           py::arg("kernels"), py::arg("X"), py::arg("algorithm") = "auto", py::arg("rank") = 0,
           py::arg("rank_tolerance") = 1e-3, py::arg("memory_limit") = 4e9, py::arg("n_threads") = 1)
      .def_property_readonly("algorithm", [](const Held& self) { return algorithm_name(self.inner.algorithm()); })
      .def_property_readonly("reason", [](const Held& self) { return self.inner.reason(); })
      .def_property_readonly("bytes", [](const Held& self) { return self.inner.bytes(); })
      .def_property_readonly("rows", [](Held& self) { return self.at(0).rows(); })
      .def(
          "apply",
          [](Held& self, const py::array& S, Index kernel, const py::object& shift) {
            const DenseView<const T> from = as_matrix<T>("S", S);
            const T* const add = as_vector<T>("shift", shift, from.cols);
            Operator<T>& op = self.at(kernel);
            py::array_t<T> out({from.rows, from.cols});
            const DenseView<T> to = as_output(out);
            run(self.threads, py::none(), [&](const Execution& execution) { op.apply(from, to, add, execution); });
            return out;
          },
          py::arg("S"), py::arg("kernel") = 0, py::arg("shift") = py::none())
      .def(
          "apply_cross",
          [](Held& self, const py::object& X_new, const py::array& S, Index kernel) {
            const Input input = as_input(X_new);
            const DenseView<const T> from = as_matrix<T>("S", S);
            Operator<T>& op = self.at(kernel);
            py::array_t<T> out({input_rows(input.view), from.cols});
            const DenseView<T> to = as_output(out);
            run(self.threads, py::none(),
                [&](const Execution& execution) { op.apply_cross(input.view, from, to, execution); });
            return out;
          },
          py::arg("X_new"), py::arg("S"), py::arg("kernel") = 0)
      .def(
          "diag",
          [](Held& self, Index kernel) {
            const Operator<T>& op = self.at(kernel);
            py::array_t<double> out(op.rows());
            op.diag(out.mutable_data());
            return out;
          },
          py::arg("kernel") = 0)
      .def(
          "bilinear_grad",
          [](Held& self, const py::array& E, const py::array& F, Index kernel) {
            const DenseView<const T> left = as_matrix<T>("E", E);
            const DenseView<const T> right = as_matrix<T>("F", F);
            Operator<T>& op = self.at(kernel);
            py::array_t<double> out(op.parameters());
            double* const to = out.mutable_data();
            run(self.threads, py::none(),
                [&](const Execution& execution) { op.bilinear_grad(left, right, to, execution); });
            return out;
          },
          py::arg("E"), py::arg("F"), py::arg("kernel") = 0)
      .def(
          "select",
          [](Held& self, const std::vector<Index>& rows) {
            run(self.threads, py::none(), [&](const Execution& execution) {
              for (Index l = 0; l < self.inner.count(); ++l) self.at(l).select(rows, execution);
            });
          },
          py::arg("rows"));
}

}  // namespace

void bind_kernel_matrices(py::module_& module) {
  bind<float>(module, "KernelMatricesSingle");
  bind<double>(module, "KernelMatricesDouble");
}

}  // namespace taxolearn::python
