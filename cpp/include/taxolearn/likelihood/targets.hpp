// What is known about the outputs of each row, and how much the row counts.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/vector.hpp"

namespace taxolearn {

/// Sets of labels, row after row: row i has labels[offsets[i]] .. labels[offsets[i + 1] - 1], in increasing order.
struct LabelSets {
  const Index* offsets = nullptr;
  const std::int32_t* labels = nullptr;
  Index rows = 0;
};

/// Targets y (n x C) as labels, where y is 1 at the labels of a row and else 0, or as a matrix; and weights s_i >= 0
/// of the rows. Views of memory that must outlive them, except in a subset, which has its own.
class Targets {
 public:
  /// One label per row; weights (length n) may be null for all ones.
  Targets(const std::int32_t* labels, Index rows, Index outputs, const double* weights);

  /// Any number of labels per row.
  Targets(const LabelSets& sets, Index outputs, const double* weights);

  /// Any numbers: the likelihood says which it takes.
  Targets(DenseView<const double> matrix, const double* weights);

  Index rows() const { return rows_; }
  Index outputs() const { return outputs_; }
  bool weighted() const { return weights_ != nullptr; }
  double weight(Index i) const { return weights_ == nullptr ? 1.0 : weights_[i]; }

  /// The row of the matrix; null where there are labels.
  const double* numbers(Index i) const { return labels_ == nullptr ? matrix_.row(i) : nullptr; }

  /// The labels of a row; none where there is a matrix.
  struct Labels {
    const std::int32_t* first = nullptr;
    const std::int32_t* last = nullptr;

    const std::int32_t* begin() const { return first; }
    const std::int32_t* end() const { return last; }
  };
  Labels labels(Index i) const {
    if (labels_ == nullptr) return {};
    if (offsets_ == nullptr) return {labels_ + i, labels_ + i + 1};
    return {labels_ + offsets_[i], labels_ + offsets_[i + 1]};
  }

  /// y_i . x
  template <class T>
  double dot(Index i, const T* x) const {
    if (labels_ == nullptr) return dot_block(matrix_.row(i), x, outputs_);
    double sum = 0.0;
    for (const std::int32_t label : labels(i)) sum += static_cast<double>(x[label]);
    return sum;
  }

  /// The given rows, with weights multiplied by factors.
  Targets subset(const std::vector<Index>& rows, const std::vector<double>& factors) const;

 private:
  struct Memory {
    std::vector<std::int32_t> labels;
    std::vector<Index> offsets{0};
    Matrix<double> matrix;
    std::vector<double> weights;
  };

  Targets() = default;

  const std::int32_t* labels_ = nullptr;  ///< null: a matrix
  const Index* offsets_ = nullptr;        ///< null: one label per row
  DenseView<const double> matrix_;
  const double* weights_ = nullptr;
  Index rows_ = 0;
  Index outputs_ = 0;
  std::shared_ptr<const Memory> memory_;  ///< of a subset
};

}  // namespace taxolearn
