#include "held_likelihood.hpp"

#include "taxolearn/likelihood/independent_logistic.hpp"
#include "taxolearn/likelihood/softmax.hpp"

namespace taxolearn::python {
namespace {

template <class Loss>
HeldLikelihood make(const py::array& targets, Index outputs, const py::object& sample_weight) {
  const Index rows = targets.ndim() > 0 ? targets.shape(0) : 0;
  const double* const weights = as_vector<double>("sample_weight", sample_weight, rows);
  if (targets.ndim() != 2) {
    const std::int32_t* const labels = as_vector<std::int32_t>("targets", targets, rows);
    return {targets, sample_weight, std::make_shared<Loss>(labels, rows, outputs, weights)};
  }
  const DenseView<const double> view = as_matrix<double>("targets", targets);
  require(view.cols == outputs, "targets has ", view.cols, " columns, expected ", outputs);
  return {targets, sample_weight, std::make_shared<Loss>(view, weights)};
}

}  // namespace

HeldLikelihood make_softmax(const py::array& targets, Index outputs, const py::object& sample_weight) {
  return make<Softmax>(targets, outputs, sample_weight);
}

HeldLikelihood make_independent_logistic(const py::array& targets, Index outputs, const py::object& sample_weight) {
  return make<IndependentLogistic>(targets, outputs, sample_weight);
}

HeldLikelihood make_independent_logistic_of_sets(const py::array& labels, const py::array& offsets, Index outputs,
                                                 const py::object& sample_weight) {
  require(offsets.size() >= 1, "offsets is empty, expected one more than there are rows");
  const Index rows = offsets.size() - 1;
  LabelSets sets;
  sets.offsets = as_vector<Index>("offsets", offsets, rows + 1);
  sets.labels = as_vector<std::int32_t>("labels", labels, labels.size());
  sets.rows = rows;
  require(sets.offsets[rows] == labels.size(), "offsets end at ", sets.offsets[rows], ", but there are ", labels.size(),
          " labels");
  const double* const weights = as_vector<double>("sample_weight", sample_weight, rows);
  return {py::make_tuple(labels, offsets), sample_weight,
          std::make_shared<IndependentLogistic>(sets, outputs, weights)};
}

}  // namespace taxolearn::python
