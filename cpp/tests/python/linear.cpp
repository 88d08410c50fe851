#include "taxolearn/operators/linear.hpp"

#include <pybind11/stl.h>

#include <map>

#include "arrays.hpp"
#include "execution.hpp"

namespace taxolearn::python {
namespace {

LinearAlgorithm algorithm_of(const std::string& name) {
  const std::map<std::string, LinearAlgorithm> names{{"auto", LinearAlgorithm::automatic},
                                                     {"sparse", LinearAlgorithm::sparse},
                                                     {"dense", LinearAlgorithm::dense},
                                                     {"blocks", LinearAlgorithm::blocks},
                                                     {"stored", LinearAlgorithm::stored}};
  const auto found = names.find(name);
  require(found != names.end(), "algorithm is \"", name, "\", expected auto, sparse, dense, blocks or stored");
  return found->second;
}

/// An operator together with the arrays it looks at.
template <class T>
struct HeldOperator {
  Input input;
  int threads;
  std::unique_ptr<Operator<T>> inner;

  HeldOperator(const py::object& X, double variance, const std::string& algorithm, int threads_)
      : input(as_input(X)), threads(threads_) {
    inner = make_linear<T>(input.view, variance, algorithm_of(algorithm), Execution{threads, nullptr});
  }

  HeldOperator(const HeldOperator& whole, const std::vector<Index>& rows) : input(whole.input), threads(whole.threads) {
    run(threads, py::none(), [&](const Execution& execution) { inner = whole.inner->subset(rows, execution); });
  }
};

template <class T>
DenseView<T> as_output(py::array_t<T>& array) {
  return {array.mutable_data(), array.shape(0), array.shape(1)};
}

template <class T>
void bind(py::module_& module, const char* name) {
  using Held = HeldOperator<T>;
  py::class_<Held>(module, name, py::module_local(), "variance * X X^T for sparse or dense X.")
      .def(py::init<py::object, double, std::string, int>(), py::arg("X"), py::arg("variance"),
           py::arg("algorithm") = "auto", py::arg("n_threads") = 1)
      .def_property_readonly("rows", [](const Held& self) { return self.inner->rows(); })
      .def_property_readonly("algorithm", [](const Held& self) { return self.inner->algorithm(); })
      .def_property_readonly("parameters", [](const Held& self) { return self.inner->parameters(); })
      .def(
          "apply",
          [](Held& self, const py::array& S, const py::object& shift) {
            const DenseView<const T> from = as_matrix<T>("S", S);
            const T* const add = as_vector<T>("shift", shift, from.cols);
            py::array_t<T> out({from.rows, from.cols});
            const DenseView<T> to = as_output(out);
            run(self.threads, py::none(),
                [&](const Execution& execution) { self.inner->apply(from, to, add, execution); });
            return out;
          },
          py::arg("S"), py::arg("shift") = py::none())
      .def(
          "apply_cross",
          [](Held& self, const py::object& X_new, const py::array& S) {
            const Input input = as_input(X_new);
            const DenseView<const T> from = as_matrix<T>("S", S);
            py::array_t<T> out({input_rows(input.view), from.cols});
            const DenseView<T> to = as_output(out);
            run(self.threads, py::none(),
                [&](const Execution& execution) { self.inner->apply_cross(input.view, from, to, execution); });
            return out;
          },
          py::arg("X_new"), py::arg("S"))
      .def("diag",
           [](const Held& self) {
             py::array_t<double> out(self.inner->rows());
             self.inner->diag(out.mutable_data());
             return out;
           })
      .def(
          "bilinear_grad",
          [](Held& self, const py::array& E, const py::array& F) {
            const DenseView<const T> left = as_matrix<T>("E", E);
            const DenseView<const T> right = as_matrix<T>("F", F);
            py::array_t<double> out(self.inner->parameters());
            double* const to = out.mutable_data();
            run(self.threads, py::none(),
                [&](const Execution& execution) { self.inner->bilinear_grad(left, right, to, execution); });
            return out;
          },
          py::arg("E"), py::arg("F"))
      .def(
          "subset", [](const Held& self, const std::vector<Index>& rows) { return std::make_unique<Held>(self, rows); },
          py::arg("rows"));
}

}  // namespace

void bind_linear(py::module_& module) {
  bind<float>(module, "LinearSingle");
  bind<double>(module, "LinearDouble");
}

}  // namespace taxolearn::python
