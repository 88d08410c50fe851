#include <pybind11/stl.h>

#include "arrays.hpp"
#include "choice.hpp"
#include "taxolearn/margin/labelings.hpp"

namespace taxolearn::python {
namespace {

const std::map<std::string, MarginLoss> losses{
    {"zero-one", MarginLoss::zero_one}, {"hamming", MarginLoss::hamming}, {"hierarchical", MarginLoss::hierarchical}};

}  // namespace

void bind_margin(py::module_& module) {
  module.def(
      "best_labeling",
      [](const std::vector<std::int32_t>& parents, const std::string& loss, std::vector<double> scales,
         const py::array& gradient, std::vector<std::int8_t> truth) {
        const LabelForest forest(parents);
        const auto* const g = as_vector<double>("gradient", gradient, forest.components());
        require(static_cast<Index>(truth.size()) == forest.nodes(), "truth has ", truth.size(), " labels, expected ",
                forest.nodes());
        truth.resize(static_cast<std::size_t>(forest.components()));
        forest.complete(truth.data());
        std::vector<std::int8_t> signs(truth.size());
        const double found =
            best_labeling(forest, {choose("loss", loss, losses), std::move(scales)}, g, truth.data(), signs.data());
        return py::make_tuple(found, signs);
      },
      py::arg("parents"), py::arg("loss"), py::arg("scales"), py::arg("gradient"), py::arg("truth"),
      "Loss and components of the labeling with the largest loss plus score.");
}

}  // namespace taxolearn::python
