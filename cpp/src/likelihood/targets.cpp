#include "taxolearn/likelihood/targets.hpp"

#include <algorithm>
#include <cmath>

#include "taxolearn/base/check.hpp"

namespace taxolearn {
namespace {

void check_weights(const double* weights, Index rows) {
  if (weights == nullptr) return;
  for (Index i = 0; i < rows; ++i) {
    require(std::isfinite(weights[i]) && weights[i] >= 0.0, "sample_weight[", i, "] is ", weights[i],
            ", expected a finite number >= 0");
  }
}

void check_label(std::int32_t label, Index row, Index outputs) {
  require(label >= 0 && label < outputs, "label ", label, " of row ", row, " is out of range, expected 0 .. ",
          outputs - 1);
}

}  // namespace

Targets::Targets(const std::int32_t* labels, Index rows, Index outputs, const double* weights)
    : labels_(labels), weights_(weights), rows_(rows), outputs_(outputs) {
  require(outputs >= 1, "number of classes is ", outputs, ", expected at least 1");
  for (Index i = 0; i < rows; ++i) check_label(labels[i], i, outputs);
  check_weights(weights, rows);
}

Targets::Targets(const LabelSets& sets, Index outputs, const double* weights)
    : labels_(sets.labels), offsets_(sets.offsets), weights_(weights), rows_(sets.rows), outputs_(outputs) {
  static const std::int32_t no_label = 0;
  if (labels_ == nullptr) labels_ = &no_label;  // all sets may be empty
  require(outputs >= 1, "number of classes is ", outputs, ", expected at least 1");
  require(offsets_ != nullptr && offsets_[0] == 0, "offsets of label sets must start at 0");
  for (Index i = 0; i < rows_; ++i) {  // all of them before any label is looked at
    require(offsets_[i + 1] >= offsets_[i], "offsets of label sets fall from ", offsets_[i], " to ", offsets_[i + 1],
            " at row ", i);
  }
  for (Index i = 0; i < rows_; ++i) {
    std::int32_t before = -1;
    for (const std::int32_t label : this->labels(i)) {
      check_label(label, i, outputs);
      require(label > before, "label ", label, " of row ", i, " follows label ", before, ", expected increasing order");
      before = label;
    }
  }
  check_weights(weights, rows_);
}

Targets::Targets(DenseView<const double> matrix, const double* weights)
    : matrix_(matrix), weights_(weights), rows_(matrix.rows), outputs_(matrix.cols) {
  require(matrix.cols >= 1, "targets have shape ", shape(matrix), ", expected at least one column");
  check_weights(weights, rows_);
}

Targets Targets::subset(const std::vector<Index>& rows, const std::vector<double>& factors) const {
  require(rows.size() == factors.size(), "there are ", rows.size(), " rows and ", factors.size(), " factors");
  const auto memory = std::make_shared<Memory>();
  Targets out;
  out.rows_ = static_cast<Index>(rows.size());
  out.outputs_ = outputs_;
  if (labels_ == nullptr) memory->matrix = Matrix<double>(out.rows_, outputs_);
  memory->labels.reserve(rows.size() + 1);  // never null
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const Index i = rows[k];
    require(i >= 0 && i < rows_, "rows contains ", i, ", expected indices in [0, ", rows_, ")");
    memory->weights.push_back(weight(i) * factors[k]);
    if (labels_ == nullptr) {
      std::copy(matrix_.row(i), matrix_.row(i) + outputs_, memory->matrix.row(static_cast<Index>(k)));
    } else {
      memory->labels.insert(memory->labels.end(), labels(i).begin(), labels(i).end());
      memory->offsets.push_back(static_cast<Index>(memory->labels.size()));
    }
  }
  check_weights(memory->weights.data(), out.rows_);
  out.weights_ = memory->weights.data();
  if (labels_ == nullptr) out.matrix_ = memory->matrix.view();
  if (labels_ != nullptr) out.labels_ = memory->labels.data();
  if (offsets_ != nullptr) out.offsets_ = memory->offsets.data();
  out.memory_ = memory;
  return out;
}

}  // namespace taxolearn
