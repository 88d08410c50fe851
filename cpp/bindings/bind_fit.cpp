#include <pybind11/stl.h>

#include "arrays.hpp"
#include "choice.hpp"
#include "execution.hpp"
#include "kernel_settings.hpp"
#include "targets.hpp"
#include "taxolearn/fit/problem.hpp"

namespace taxolearn::python {
namespace {

const std::map<std::string, Method> methods{
    {"lbfgs", Method::lbfgs}, {"ncg", Method::nonlinear_cg}, {"newton", Method::newton}, {"exact", Method::exact}};
const std::map<std::string, State> states{
    {"auto", State::automatic}, {"coefficients", State::coefficients}, {"weights", State::weights}};
const std::map<std::string, Precision> precisions{
    {"auto", Precision::automatic}, {"single", Precision::single}, {"double", Precision::double_}};
const std::map<std::string, Output> outputs{{"predictor", Output::predictor},
                                            {"probability", Output::probability},
                                            {"log_probability", Output::log_probability}};

py::dict as_dict(Result&& result) {
  py::dict timings;
  timings["setup"] = result.timings.setup;
  timings["products"] = result.timings.products;
  timings["likelihood"] = result.timings.likelihood;
  timings["vectors"] = result.timings.vectors;
  timings["certificate"] = result.timings.certificate;
  timings["total"] = result.timings.total;
  py::dict out;
  out["status"] = status_name(result.status);
  out["iterations"] = result.iterations;
  out["products"] = result.products;
  out["objective"] = result.objective;
  out["gap"] = result.gap;
  out["relative_gap"] = result.relative_gap;
  out["algorithm"] = result.algorithm;
  out["reason"] = result.reason;
  out["kernel_bytes"] = result.kernel_bytes;
  out["ranks"] = result.ranks;
  out["state"] = result.state;
  out["precision"] = result.precision;
  out["timings"] = timings;
  out["intercepts"] = py::array_t<double>(static_cast<py::ssize_t>(result.intercepts.size()), result.intercepts.data());
  out["weights"] = as_array(std::move(result.weights));
  py::list expansions;
  for (Expansion& expansion : result.expansions)
    expansions.append(py::make_tuple(expansion.basis, as_array(std::move(expansion.coefficients))));
  out["expansions"] = expansions;
  if (!result.point.empty()) out["point"] = as_array(std::move(result.point));
  return out;
}

Settings as_settings(const std::string& method, const std::string& state, const std::string& precision, double tol,
                     int max_iter, int history, bool keep_point) {
  Settings settings;
  settings.method = choose("method", method, methods);
  settings.state = choose("state", state, states);
  settings.precision = choose("precision", precision, precisions);
  settings.tolerance = tol;
  settings.max_iterations = max_iter;
  settings.history = history;
  settings.keep_point = keep_point;
  return settings;
}

py::dict fit_linear(const py::object& X, const py::array& targets, Index n_classes, const py::object& sample_weight,
                    const Coupling* coupling, double variance, double sigma2, const std::string& method,
                    const std::string& state, const std::string& precision, double tol, int max_iter, int history,
                    const py::object& start_weights, const py::object& start_point, bool keep_point, int n_threads,
                    const py::object& progress) {
  const Input input = as_input(X);
  const HeldSoftmax softmax(targets, n_classes, sample_weight);
  Problem problem;
  problem.X = input.view;
  problem.likelihood = softmax.likelihood.get();
  problem.coupling = coupling;
  problem.variance = variance;
  problem.sigma2 = sigma2;
  const Settings settings = as_settings(method, state, precision, tol, max_iter, history, keep_point);
  Start start;
  start.weights = as_vector<double>("start_weights", start_weights, (input_features(input.view) + 1) * n_classes);
  start.point = as_vector<double>("start_point", start_point, point_size(problem, choose_state(problem, settings)));
  Result result;
  run(n_threads, progress, [&](const Execution& execution) { result = fit(problem, settings, start, execution); });
  return as_dict(std::move(result));
}

template <class U>
py::array_t<double> predict_weights(const Input& input, DenseView<const U> W, const py::object& intercepts, Output kind,
                                    int n_threads) {
  const double* const b = as_vector<double>("intercepts", intercepts, W.cols);
  require(b != nullptr, "intercepts is None, expected an array of ", W.cols, " elements");
  py::array_t<double> out({input_rows(input.view), W.cols});
  const DenseView<double> to(out.mutable_data(), out.shape(0), out.shape(1));
  run(n_threads, py::none(), [&](const Execution& execution) { predict(input.view, W, b, kind, to, execution); });
  return out;
}

py::array_t<double> predict_linear(const py::object& X, const py::array& weights, const py::object& intercepts,
                                   const std::string& output, int n_threads) {
  const Input input = as_input(X);
  const Output kind = choose("output", output, outputs);
  if (py::isinstance<py::array_t<float>>(weights))
    return predict_weights(input, as_matrix<float>("weights", weights), intercepts, kind, n_threads);
  return predict_weights(input, as_matrix<double>("weights", weights), intercepts, kind, n_threads);
}

py::dict fit_kernels(const std::vector<std::shared_ptr<const Kernel>>& kernels, const std::vector<Index>& kernel_of,
                     const py::object& X, const py::array& targets, Index n_classes, const py::object& sample_weight,
                     const Coupling* coupling, double sigma2, const std::string& method, const std::string& state,
                     const std::string& precision, double tol, int max_iter, int history, const std::string& algorithm,
                     double memory_limit, Index rank, double rank_tolerance, const py::object& start_predictors,
                     const py::object& start_point, bool keep_point, int n_threads, const py::object& progress) {
  const Input input = as_input(X);
  const HeldSoftmax softmax(targets, n_classes, sample_weight);
  KernelMatrices matrices(kernels, input.view, as_kernel_settings(algorithm, rank, rank_tolerance, memory_limit));
  Problem problem;
  problem.X = input.view;
  problem.likelihood = softmax.likelihood.get();
  problem.coupling = coupling;
  problem.sigma2 = sigma2;
  problem.kernels = &matrices;
  problem.kernel_of = kernel_of;
  const Settings settings = as_settings(method, state, precision, tol, max_iter, history, keep_point);
  Start start;
  start.predictors = as_vector<double>("start_predictors", start_predictors, input_rows(input.view) * n_classes);
  start.point = as_vector<double>("start_point", start_point, point_size(problem, choose_state(problem, settings)));
  Result result;
  run(n_threads, progress, [&](const Execution& execution) { result = fit(problem, settings, start, execution); });
  return as_dict(std::move(result));
}

py::array_t<double> predict_kernels(const std::vector<std::shared_ptr<const Kernel>>& kernels,
                                    const std::vector<py::object>& bases, const std::vector<py::array>& coefficients,
                                    const std::vector<Index>& kernel_of, const Coupling* coupling, const py::object& X,
                                    const py::object& intercepts, Index n_classes, const std::string& output,
                                    int n_threads) {
  require(kernels.size() == bases.size() && kernels.size() == coefficients.size(), "there are ", kernels.size(),
          " kernels, ", bases.size(), " bases and ", coefficients.size(), " arrays of coefficients");
  const Input input = as_input(X);
  std::vector<Input> held;
  std::vector<Term> terms;
  for (std::size_t l = 0; l < kernels.size(); ++l) {
    held.push_back(as_input(bases[l]));
    terms.push_back({kernels[l], held.back().view, as_matrix<double>("coefficients", coefficients[l])});
  }
  const double* const b = as_vector<double>("intercepts", intercepts, n_classes);
  require(b != nullptr, "intercepts is None, expected an array of ", n_classes, " elements");
  const Output kind = choose("output", output, outputs);
  py::array_t<double> out({input_rows(input.view), n_classes});
  const DenseView<double> to(out.mutable_data(), out.shape(0), out.shape(1));
  run(n_threads, py::none(),
      [&](const Execution& execution) { predict(input.view, terms, kernel_of, coupling, b, kind, to, execution); });
  return out;
}

}  // namespace

void bind_fit(py::module_& module) {
  module.def("fit_linear", &fit_linear, "Fits kernel logistic regression with a linear kernel.", py::kw_only(),
             py::arg("X"), py::arg("targets"), py::arg("n_classes"), py::arg("sample_weight") = py::none(),
             py::arg("coupling") = py::none(), py::arg("variance"), py::arg("sigma2"), py::arg("method") = "lbfgs",
             py::arg("state") = "auto", py::arg("precision") = "auto", py::arg("tol") = 1e-6,
             py::arg("max_iter") = 1000, py::arg("history") = 0, py::arg("start_weights") = py::none(),
             py::arg("start_point") = py::none(), py::arg("keep_point") = false, py::arg("n_threads") = 1,
             py::arg("progress") = py::none());
  module.def("predict_linear", &predict_linear, "Predictors, probabilities or their logarithms.", py::kw_only(),
             py::arg("X"), py::arg("weights"), py::arg("intercepts"), py::arg("output") = "predictor",
             py::arg("n_threads") = 1);
  module.def("fit_kernels", &fit_kernels, "Fits kernel logistic regression with any kernels.", py::kw_only(),
             py::arg("kernels"), py::arg("kernel_of") = std::vector<Index>(), py::arg("X"), py::arg("targets"),
             py::arg("n_classes"), py::arg("sample_weight") = py::none(), py::arg("coupling") = py::none(),
             py::arg("sigma2"), py::arg("method") = "lbfgs", py::arg("state") = "auto", py::arg("precision") = "auto",
             py::arg("tol") = 1e-6, py::arg("max_iter") = 1000, py::arg("history") = 0, py::arg("algorithm") = "auto",
             py::arg("memory_limit") = 4e9, py::arg("rank") = 0, py::arg("rank_tolerance") = 1e-3,
             py::arg("start_predictors") = py::none(), py::arg("start_point") = py::none(),
             py::arg("keep_point") = false, py::arg("n_threads") = 1, py::arg("progress") = py::none());
  module.def("predict_kernels", &predict_kernels, "The same from kernel expansions.", py::kw_only(), py::arg("kernels"),
             py::arg("bases"), py::arg("coefficients"), py::arg("kernel_of") = std::vector<Index>(),
             py::arg("coupling") = py::none(), py::arg("X"), py::arg("intercepts"), py::arg("n_classes"),
             py::arg("output") = "predictor", py::arg("n_threads") = 1);
}

}  // namespace taxolearn::python
