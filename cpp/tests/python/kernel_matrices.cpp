#include "taxolearn/operators/kernel_matrices.hpp"

#include <pybind11/stl.h>

#include "arrays.hpp"
#include "choice.hpp"
#include "execution.hpp"

namespace taxolearn::python {
namespace {

/// Kernel matrices together with the arrays they look at.
template <class T>
struct HeldMatrices {
  Input input;
  int threads;
  std::shared_ptr<KernelMatrices> inner;
  Operators<T> views;  ///< of a subset of the rows; empty: all rows

  HeldMatrices(std::vector<std::shared_ptr<const Kernel>> kernels, const py::object& X, const KernelSettings& settings,
               int threads_)
      : input(as_input(X)),
        threads(threads_),
        inner(std::make_shared<KernelMatrices>(std::move(kernels), input.view, settings)) {
    run(threads, py::none(), [&](const Execution& execution) { inner->operators<T>(execution); });
  }

  HeldMatrices(HeldMatrices& whole, const std::vector<Index>& rows)
      : input(whole.input), threads(whole.threads), inner(whole.inner) {
    run(threads, py::none(), [&](const Execution& execution) {
      for (Index l = 0; l < inner->count(); ++l) views.push_back(whole.at(l).subset(rows, execution));
    });
  }

  Operator<T>& at(Index kernel) {
    require(kernel >= 0 && kernel < inner->count(), "kernel is ", kernel, ", expected a number below ", inner->count());
    const Operators<T>& all = views.empty() ? inner->operators<T>(Execution{threads, nullptr}) : views;
    return *all[static_cast<std::size_t>(kernel)];
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
                       const std::string& algorithm, std::optional<Index> rank, std::optional<double> rank_tolerance,
                       double memory_limit, int n_threads) {
             static const std::map<std::string, KernelAlgorithm> algorithms{{"auto", KernelAlgorithm::automatic},
                                                                            {"gram", KernelAlgorithm::gram},
                                                                            {"tiled", KernelAlgorithm::tiled},
                                                                            {"low_rank", KernelAlgorithm::low_rank}};
             const KernelAlgorithm chosen = choose("algorithm", algorithm, algorithms);
             return std::make_unique<Held>(std::move(kernels), X,
                                           make_kernel_settings(chosen, memory_limit, rank, rank_tolerance), n_threads);
           }),
           py::arg("kernels"), py::arg("X"), py::arg("algorithm") = "auto", py::arg("rank") = py::none(),
           py::arg("rank_tolerance") = py::none(), py::arg("memory_limit") = 4e9, py::arg("n_threads") = 1)
      .def_property_readonly("algorithm", [](const Held& self) { return algorithm_name(self.inner->algorithm()); })
      .def_property_readonly("reason", [](const Held& self) { return self.inner->reason(); })
      .def_property_readonly("bytes", [](const Held& self) { return self.inner->bytes(); })
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
          "subset", [](Held& self, const std::vector<Index>& rows) { return std::make_unique<Held>(self, rows); },
          py::arg("rows"));
}

}  // namespace

void bind_kernel_matrices(py::module_& module) {
  bind<float>(module, "KernelMatricesSingle");
  bind<double>(module, "KernelMatricesDouble");
}

}  // namespace taxolearn::python
