// A likelihood together with the arrays from Python that it looks at.
#pragma once

#include <memory>

#include "arrays.hpp"
#include "taxolearn/likelihood/likelihood.hpp"

namespace taxolearn::python {

struct HeldLikelihood {
  py::array targets;
  py::object weights;
  std::shared_ptr<const Likelihood> inner;
};

/// targets: int32 classes of the rows, or a float64 matrix, whose rows are distributions.
HeldLikelihood make_softmax(const py::array& targets, Index outputs, const py::object& sample_weight);

/// targets: int32 classes of the rows, or a float64 matrix of probabilities.
HeldLikelihood make_independent_logistic(const py::array& targets, Index outputs, const py::object& sample_weight);

}  // namespace taxolearn::python
