// A likelihood together with the arrays from Python that it looks at.
#pragma once

#include <memory>

#include "arrays.hpp"
#include "taxolearn/likelihood/likelihood.hpp"

namespace taxolearn::python {

struct HeldLikelihood {
  py::object targets;
  py::object weights;
  std::shared_ptr<const Likelihood> inner;
};

/// targets: int32 classes of the rows, or a float64 matrix, whose rows are distributions.
HeldLikelihood make_softmax(const py::array& targets, Index outputs, const py::object& sample_weight);

/// targets: int32 classes of the rows, or a float64 matrix of probabilities.
HeldLikelihood make_independent_logistic(const py::array& targets, Index outputs, const py::object& sample_weight);

/// labels (int32) of row i: from offsets[i] to before offsets[i + 1] (int64), in increasing order; any number of them.
HeldLikelihood make_independent_logistic_of_sets(const py::array& labels, const py::array& offsets, Index outputs,
                                                 const py::object& sample_weight);

}  // namespace taxolearn::python
