#include <pybind11/stl.h>

#include "arrays.hpp"
#include "choice.hpp"
#include "execution.hpp"
#include "taxolearn/classes/decision.hpp"
#include "taxolearn/couplings/factors.hpp"
#include "taxolearn/couplings/graph.hpp"
#include "taxolearn/couplings/independent.hpp"
#include "taxolearn/couplings/tree.hpp"

namespace taxolearn::python {
namespace {

const std::map<std::string, TreeLoss> losses{
    {"zero-one", TreeLoss::zero_one}, {"taxo", TreeLoss::taxo}, {"parent", TreeLoss::parent}};

std::vector<Index> as_indices(const char* name, const py::array& array) {
  const std::int64_t* const values = as_vector<std::int64_t>(name, array, array.size());
  return {values, values + array.size()};
}

ClassProbabilities as_probabilities(const Taxonomy& taxonomy, const py::array& values, const py::object& columns) {
  ClassProbabilities out;
  out.values = as_matrix<double>("proba", values);
  out.columns = as_vector<Index>("columns", columns, taxonomy.classes());
  for (Index c = 0; out.columns != nullptr && c < taxonomy.classes(); ++c)
    require(out.columns[c] >= 0 && out.columns[c] < out.values.cols, "columns[", c, "] is ", out.columns[c],
            ", expected a column of proba, which has ", out.values.cols);
  return out;
}

std::vector<double> as_numbers(const char* name, const py::array& array) {
  const double* const values = as_vector<double>(name, array, array.size());
  return {values, values + array.size()};
}

TiedVariances as_tied(const py::array& variances, const py::object& groups) {
  TiedVariances out;
  out.variances = as_numbers("variances", variances);
  if (!groups.is_none()) out.groups = as_indices("groups", py::cast<py::array>(groups));
  return out;
}

/// Node numbers and expected losses of `rows` decisions made by work(out, execution).
template <class Work>
py::tuple decisions(Index rows, int threads, const Work& work) {
  py::array_t<Index> node(rows);
  py::array_t<double> expected_loss(rows);
  const Decisions out{node.mutable_data(), expected_loss.mutable_data()};
  run(threads, py::none(), [&](const Execution& execution) { work(out, execution); });
  return py::make_tuple(node, expected_loss);
}

void bind_taxonomy(py::module_& module) {
  py::class_<Taxonomy, std::shared_ptr<Taxonomy>>(module, "Taxonomy", py::module_local(), "A tree in canonical order.")
      .def(py::init([](const py::array& parents) { return Taxonomy(as_indices("parents", parents)); }),
           py::arg("parents"))
      .def_property_readonly("nodes", &Taxonomy::nodes)
      .def_property_readonly("inner", &Taxonomy::inner)
      .def(
          "node_probabilities",
          [](const Taxonomy& self, const py::array& proba, const py::object& columns, int n_threads) {
            const ClassProbabilities from = as_probabilities(self, proba, columns);
            py::array_t<double> out({from.values.rows, self.nodes()});
            const DenseView<double> to(out.mutable_data(), out.shape(0), out.shape(1));
            run(n_threads, py::none(), [&](const Execution& execution) {
              node_probabilities(self, from.values, from.columns, to, execution);
            });
            return out;
          },
          py::arg("proba"), py::arg("columns") = py::none(), py::arg("n_threads") = 1)
      .def(
          "decide",
          [](const Taxonomy& self, const py::array& proba, const std::string& loss, const py::object& columns,
             const py::object& costs, int n_threads) {
            const ClassProbabilities from = as_probabilities(self, proba, columns);
            const TreeLoss kind = choose("loss", loss, losses);
            const double* const prices = as_vector<double>("costs", costs, self.nodes());
            return decisions(from.values.rows, n_threads, [&](const Decisions& out, const Execution& execution) {
              decide(self, from, kind, prices, out, execution);
            });
          },
          py::arg("proba"), py::arg("loss"), py::arg("columns") = py::none(), py::arg("costs") = py::none(),
          py::arg("n_threads") = 1)
      .def(
          "decide_confident",
          [](const Taxonomy& self, const py::array& proba, double confidence, const py::object& columns,
             int n_threads) {
            const ClassProbabilities from = as_probabilities(self, proba, columns);
            return decisions(from.values.rows, n_threads, [&](const Decisions& out, const Execution& execution) {
              decide_confident(self, from, confidence, out, execution);
            });
          },
          py::arg("proba"), py::arg("confidence"), py::arg("columns") = py::none(), py::arg("n_threads") = 1);
}

/// S G for a block of all rows.
template <class T>
py::array_t<T> applied(const Coupling& self, const py::array& S, int threads) {
  const DenseView<const T> from = as_matrix<T>("S", S);
  require_shape("S", from, from.rows, self.classes());
  py::array_t<T> out({from.rows, from.cols});
  T* const to = out.mutable_data();
  run(threads, py::none(), [&](const Execution& execution) {
    const Blocks blocks(from.rows, 16);
    parallel_for(blocks.number(), execution, [&](Index block) {
      T* const rows = to + blocks.first(block) * from.cols;
      for (Index i = 0; i < blocks.length(block); ++i) {
        const T* const row = from.row(blocks.first(block) + i);
        std::copy(row, row + from.cols, rows + i * from.cols);
      }
      self.apply(blocks.length(block), rows);
    });
  });
  return out;
}

const double* contiguous(const char* name, const DenseView<const double>& view, Index cols) {
  require_shape(name, view, view.rows, cols);
  require(view.stride == view.cols, name, " must be contiguous");
  return view.data;
}

Matrix<double> copied(const char* name, const py::array& array) {
  const DenseView<const double> from = as_matrix<double>(name, array);
  Matrix<double> out(from.rows, from.cols);
  for (Index i = 0; i < from.rows; ++i) std::copy(from.row(i), from.row(i) + from.cols, out.row(i));
  return out;
}

void bind_coupling(py::module_& module) {
  py::class_<Coupling, std::shared_ptr<Coupling>>(module, "Coupling", py::module_local(),
                                                  "Prior covariance G = R R^T of the classes.")
      .def_property_readonly("classes", &Coupling::classes)
      .def_property_readonly("factors", &Coupling::factors)
      .def_property_readonly("parameters", &Coupling::parameters)
      .def(
          "apply",
          [](const Coupling& self, const py::array& S, int n_threads) -> py::array {
            if (py::isinstance<py::array_t<float>>(S)) return applied<float>(self, S, n_threads);
            return applied<double>(self, S, n_threads);
          },
          py::arg("S"), py::arg("n_threads") = 1)
      .def("to_factors",
           [](const Coupling& self, const py::array& S) {
             const DenseView<const double> from = as_matrix<double>("S", S);
             py::array_t<double> out({from.rows, self.factors()});
             self.to_factors(from.rows, contiguous("S", from, self.classes()), out.mutable_data());
             return out;
           })
      .def("from_factors",
           [](const Coupling& self, const py::array& A) {
             const DenseView<const double> from = as_matrix<double>("A", A);
             py::array_t<double> out({from.rows, self.classes()});
             self.from_factors(from.rows, contiguous("A", from, self.factors()), out.mutable_data());
             return out;
           })
      .def("diag",
           [](const Coupling& self) {
             py::array_t<double> out(self.classes());
             self.diag(out.mutable_data());
             return out;
           })
      .def("bilinear_grad", [](const Coupling& self, const py::array& E, const py::array& H) {
        const DenseView<const double> left = as_matrix<double>("E", E);
        const DenseView<const double> right = as_matrix<double>("H", H);
        require_shape("H", right, left.rows, left.cols);
        py::array_t<double> out(self.parameters());
        std::fill(out.mutable_data(), out.mutable_data() + out.size(), 0.0);
        self.bilinear_grad(left.rows, contiguous("E", left, self.classes()), contiguous("H", right, self.classes()),
                           out.mutable_data());
        return out;
      });
  py::class_<IndependentCoupling, Coupling, std::shared_ptr<IndependentCoupling>>(module, "IndependentCoupling",
                                                                                  py::module_local(), "G = diag(v).")
      .def(py::init([](const py::array& variances, const py::object& groups) {
             return std::make_shared<IndependentCoupling>(as_tied(variances, groups));
           }),
           py::arg("variances"), py::arg("groups") = py::none());
  py::class_<TreeCoupling, Coupling, std::shared_ptr<TreeCoupling>>(module, "TreeCoupling", py::module_local(),
                                                                    "G = Phi diag(v) Phi^T.")
      .def(py::init([](std::shared_ptr<Taxonomy> taxonomy, const py::array& variances, const py::object& groups) {
             return std::make_shared<TreeCoupling>(std::move(taxonomy), as_tied(variances, groups));
           }),
           py::arg("taxonomy"), py::arg("variances"), py::arg("groups") = py::none());
  py::class_<GraphCoupling, Coupling, std::shared_ptr<GraphCoupling>>(
      module, "GraphCoupling", py::module_local(), "G = variance (Q^-1)[classes, classes], Q of a graph.")
      .def(py::init([](const py::array& first, const py::array& second, const py::array& weights,
                       const py::array& ridges, const py::array& classes, double variance) {
             GraphPrecision precision;
             precision.first = as_indices("first", first);
             precision.second = as_indices("second", second);
             precision.weights = as_numbers("weights", weights);
             precision.ridges = as_numbers("ridges", ridges);
             const std::vector<Index> nodes = as_indices("classes", classes);
             py::gil_scoped_release release;
             return std::make_shared<GraphCoupling>(precision, nodes, variance);
           }),
           py::arg("first"), py::arg("second"), py::arg("weights"), py::arg("ridges"), py::arg("classes"),
           py::arg("variance") = 1.0)
      .def_property_readonly("is_stored", &GraphCoupling::is_stored)
      .def_property_readonly("entries", &GraphCoupling::entries);
  py::class_<FactorCoupling, Coupling, std::shared_ptr<FactorCoupling>>(module, "FactorCoupling", py::module_local(),
                                                                        "G = R_0 R_0^T + B B^T.")
      .def(py::init([](std::shared_ptr<Coupling> base, const py::array& loadings) {
             return std::make_shared<FactorCoupling>(std::move(base), copied("loadings", loadings));
           }),
           py::arg("base"), py::arg("loadings"));
}

}  // namespace

void bind_classes(py::module_& module) {
  bind_taxonomy(module);
  bind_coupling(module);
}

}  // namespace taxolearn::python
