#include "label_matrix.hpp"

#include <limits>
#include <numeric>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/base/vector.hpp"

namespace taxolearn {
namespace {

constexpr Index per_block = 256;

}  // namespace

LabelMatrix::LabelMatrix(const EmbeddingProblem& problem) : center_(problem.center) {
  const Index n = input_rows(problem.X);
  require(n <= std::numeric_limits<std::int32_t>::max(), "X has ", n, " rows, expected at most ",
          std::numeric_limits<std::int32_t>::max());
  require(problem.label_offsets != nullptr && problem.label_offsets[0] == 0, "label_offsets must start at 0");
  offsets_.push_back(0);
  rows_of_.assign(static_cast<std::size_t>(problem.classes) + 1, 0);
  for (Index i = 0; i < n; ++i) {
    require(problem.label_offsets[i] <= problem.label_offsets[i + 1], "label_offsets falls at row ", i);
    for (std::int64_t k = problem.label_offsets[i]; k < problem.label_offsets[i + 1]; ++k) {
      const std::int32_t label = problem.labels[k];
      require(label >= 0 && label < problem.classes, "labels has ", label, " in row ", i, ", expected 0 to ",
              problem.classes - 1);
      labels_.push_back(label);
      ++rows_of_[static_cast<std::size_t>(label) + 1];
    }
    offsets_.push_back(static_cast<Index>(labels_.size()));
  }
  std::partial_sum(rows_of_.begin(), rows_of_.end(), rows_of_.begin());
  members_.resize(labels_.size());
  std::vector<Index> next(rows_of_.begin(), rows_of_.end() - 1);
  for (Index i = 0; i < n; ++i) {
    for (Index k = offsets_[static_cast<std::size_t>(i)]; k < offsets_[static_cast<std::size_t>(i) + 1]; ++k) {
      Index& at = next[static_cast<std::size_t>(labels_[static_cast<std::size_t>(k)])];
      members_[static_cast<std::size_t>(at++)] = static_cast<std::int32_t>(i);
    }
  }
  mean_.assign(static_cast<std::size_t>(problem.classes), 0.0);
}

void LabelMatrix::set_weights(const std::vector<double>& weights) {
  if (!center_) return;
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t label = 0; label < mean_.size(); ++label) {
    double sum = 0.0;
    for (Index k = rows_of_[label]; k < rows_of_[label + 1]; ++k) {
      sum += weights[static_cast<std::size_t>(members_[static_cast<std::size_t>(k)])];
    }
    mean_[label] = sum / total;
  }
}

template <class T>
void LabelMatrix::expand(DenseView<const T> Q, DenseView<T> out, const Execution& execution) const {
  require_shape("Q", Q, classes(), out.cols);
  std::vector<double> shift(static_cast<std::size_t>(Q.cols), 0.0);
  for (Index label = 0; label < Q.rows; ++label) {
    axpy_block(-mean_[static_cast<std::size_t>(label)], Q.row(label), shift.data(), Q.cols);
  }
  const Blocks blocks(rows(), per_block);
  parallel_for(blocks.number(), execution, [&](Index block) {
    for (Index i = blocks.first(block); i < blocks.first(block) + blocks.length(block); ++i) {
      T* const to = out.row(i);
      convert_block(shift.data(), to, Q.cols);
      for (Index k = offsets_[static_cast<std::size_t>(i)]; k < offsets_[static_cast<std::size_t>(i) + 1]; ++k) {
        const T* const from = Q.row(labels_[static_cast<std::size_t>(k)]);
        for (Index c = 0; c < Q.cols; ++c) to[c] += from[c];
      }
    }
  });
}

template <class T>
void LabelMatrix::project(DenseView<const T> E, DenseView<T> out, const Execution& execution) const {
  require_shape("out", out, classes(), E.cols);
  std::vector<double> sums(static_cast<std::size_t>(E.cols), 0.0);
  if (center_) column_sums(E, sums.data(), execution);
  const Blocks blocks(classes(), per_block);
  parallel_for(blocks.number(), execution, [&](Index block) {
    std::vector<double> sum(static_cast<std::size_t>(E.cols));
    for (Index label = blocks.first(block); label < blocks.first(block) + blocks.length(block); ++label) {
      const auto at = static_cast<std::size_t>(label);
      for (std::size_t c = 0; c < sum.size(); ++c) sum[c] = -mean_[at] * sums[c];
      for (Index k = rows_of_[at]; k < rows_of_[at + 1]; ++k) {
        axpy_block(1.0, E.row(members_[static_cast<std::size_t>(k)]), sum.data(), E.cols);
      }
      convert_block(sum.data(), out.row(label), E.cols);
    }
  });
}

#define TAXOLEARN_INSTANTIATE(T)                                                               \
  template void LabelMatrix::expand(DenseView<const T>, DenseView<T>, const Execution&) const; \
  template void LabelMatrix::project(DenseView<const T>, DenseView<T>, const Execution&) const;
TAXOLEARN_INSTANTIATE(float)
TAXOLEARN_INSTANTIATE(double)
#undef TAXOLEARN_INSTANTIATE

}  // namespace taxolearn
