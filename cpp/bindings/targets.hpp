// Labels or soft targets from Python, held together with the likelihood that looks at them.
#pragma once

#include <memory>

#include "arrays.hpp"
#include "taxolearn/likelihood/softmax.hpp"

namespace taxolearn::python {

struct HeldSoftmax {
  py::array targets;
  py::object weights;
  std::unique_ptr<Softmax> likelihood;

  /// targets: int32 classes of the rows, or a float64 matrix of distributions.
  HeldSoftmax(py::array targets_, Index classes, py::object weights_)
      : targets(std::move(targets_)), weights(std::move(weights_)) {
    const Index rows = targets.ndim() > 0 ? targets.shape(0) : 0;
    const double* const w = as_vector<double>("sample_weight", weights, rows);
    if (targets.ndim() == 2) {
      const DenseView<const double> view = as_matrix<double>("targets", targets);
      require(view.cols == classes, "targets has ", view.cols, " columns, expected ", classes);
      likelihood = std::make_unique<Softmax>(view, w);
    } else {
      likelihood = std::make_unique<Softmax>(as_vector<std::int32_t>("targets", targets, rows), rows, classes, w);
    }
  }
};

}  // namespace taxolearn::python
