#include <pybind11/stl.h>

#include <map>

#include "arrays.hpp"
#include "choice.hpp"
#include "execution.hpp"
#include "taxolearn/kernels/functions.hpp"

namespace taxolearn::python {
namespace {

using KernelPointer = std::shared_ptr<const Kernel>;
using Parts = std::vector<std::shared_ptr<Kernel>>;

const std::map<std::string, StationaryForm> forms{{"rbf", StationaryForm::rbf},
                                                  {"matern12", StationaryForm::matern12},
                                                  {"matern32", StationaryForm::matern32},
                                                  {"matern52", StationaryForm::matern52},
                                                  {"rational_quadratic", StationaryForm::rational_quadratic}};

/// Python knows no constants; nothing that it can call changes a kernel.
std::shared_ptr<Kernel> to_python(const KernelPointer& kernel) { return std::const_pointer_cast<Kernel>(kernel); }

std::vector<KernelPointer> from_python(const Parts& parts) { return {parts.begin(), parts.end()}; }

template <class T>
py::array matrix(const Kernel& kernel, const py::object& X, const py::object& Y, int threads) {
  const Input left_input = as_input(X);
  const Input right_input = Y.is_none() ? left_input : as_input(Y);
  const InputRows left{left_input.view, {}}, right{right_input.view, {}};
  const InputRows& other = Y.is_none() ? left : right;
  py::array_t<T> out({left.count(), other.count()});
  const DenseView<T> to(out.mutable_data(), left.count(), other.count());
  run(threads, py::none(), [&](const Execution& execution) { kernel_matrix<T>(kernel, left, other, to, execution); });
  return out;
}

py::array_t<double> diag(const Kernel& kernel, const py::object& X) {
  const Input input = as_input(X);
  const InputRows rows{input.view, {}};
  py::array_t<double> out(rows.count());
  kernel.diag(rows, out.mutable_data());
  return out;
}

py::array_t<double> gradient(const Kernel& kernel, const py::object& X, const py::array& Q, int threads) {
  const Input input = as_input(X);
  const InputRows rows{input.view, {}};
  const DenseView<const double> weights = as_matrix<double>("Q", Q);
  py::array_t<double> out(kernel.parameters());
  double* const to = out.mutable_data();
  run(threads, py::none(),
      [&](const Execution& execution) { kernel_gradient(kernel, rows, rows, weights, to, execution); });
  return out;
}

std::vector<double> as_scales(const py::array& length_scales) {
  const Index count = length_scales.size();
  const double* const values = as_vector<double>("length_scales", length_scales, count);
  return {values, values + count};
}

}  // namespace

void bind_kernels(py::module_& module) {
  // Not local to the module: taxolearn_testing takes these kernels too.
  py::class_<Kernel, std::shared_ptr<Kernel>>(module, "Kernel", "A covariance function with fixed parameters.")
      .def_property_readonly("parameters", &Kernel::parameters)
      .def(
          "matrix",
          [](const Kernel& kernel, const py::object& X, const py::object& Y, int threads, bool single) {
            return single ? matrix<float>(kernel, X, Y, threads) : matrix<double>(kernel, X, Y, threads);
          },
          py::arg("X"), py::arg("Y") = py::none(), py::arg("n_threads") = 1, py::arg("single") = false,
          "Entries between all rows of X and all rows of Y, or of X and X, maybe in single precision.")
      .def("diag", &diag, py::arg("X"), "k(x, x) of all rows x of X.")
      .def("gradient", &gradient, py::arg("X"), py::arg("Q"), py::arg("n_threads") = 1,
           "Derivatives of sum_ij Q_ij k(x_i, x_j) by the logarithms of all parameters.");
  module.def(
      "LinearKernel", [](double variance) { return to_python(make_linear_kernel(variance)); }, py::arg("variance"));
  module.def(
      "StationaryKernel",
      [](const std::string& form, const py::array& length_scales, double variance, double alpha) {
        return to_python(
            make_stationary_kernel(choose("form", form, forms), as_scales(length_scales), variance, alpha));
      },
      py::arg("form"), py::arg("length_scales"), py::arg("variance"), py::arg("alpha") = 1.0);
  module.def(
      "PolynomialKernel",
      [](int degree, double scale, double offset, double variance) {
        return to_python(make_polynomial_kernel(degree, scale, offset, variance));
      },
      py::arg("degree"), py::arg("scale"), py::arg("offset"), py::arg("variance"));
  module.def(
      "CosineKernel", [](double variance) { return to_python(make_cosine_kernel(variance)); }, py::arg("variance"));
  module.def(
      "PrecomputedKernel", [](double variance) { return to_python(make_precomputed_kernel(variance)); },
      py::arg("variance"));
  module.def(
      "SubsequenceKernel",
      [](int length, double decay, bool normalized, double variance) {
        return to_python(make_subsequence_kernel(length, decay, normalized, variance));
      },
      py::arg("length"), py::arg("decay"), py::arg("normalized"), py::arg("variance"));
  module.def(
      "SpectrumKernel",
      [](const std::vector<int>& lengths, bool normalized, double variance) {
        return to_python(make_spectrum_kernel(lengths, normalized, variance));
      },
      py::arg("lengths"), py::arg("normalized"), py::arg("variance"));
  module.def(
      "WeightedDegreeKernel",
      [](const std::vector<int>& lengths, bool normalized, double variance) {
        return to_python(make_weighted_degree_kernel(lengths, normalized, variance));
      },
      py::arg("lengths"), py::arg("normalized"), py::arg("variance"));
  module.def(
      "SumKernel", [](const Parts& parts) { return to_python(make_sum_kernel(from_python(parts))); }, py::arg("parts"));
  module.def(
      "ProductKernel", [](const Parts& parts) { return to_python(make_product_kernel(from_python(parts))); },
      py::arg("parts"));
  module.def(
      "BlockKernel", [](const Parts& parts) { return to_python(make_block_kernel(from_python(parts))); },
      py::arg("parts"));
}

}  // namespace taxolearn::python
