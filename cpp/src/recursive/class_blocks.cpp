#include "class_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "taxolearn/base/check.hpp"

namespace taxolearn {
namespace {

constexpr Index lanes_apart = 16;

void require_weights(const char* name, const std::vector<double>& weights, Index expected, bool zero_allowed) {
  require(static_cast<Index>(weights.size()) == expected, name, " has ", weights.size(), " elements, expected ",
          expected);
  for (std::size_t k = 0; k < weights.size(); ++k) {
    require(std::isfinite(weights[k]) && (zero_allowed ? weights[k] >= 0.0 : weights[k] > 0.0), name, "[", k, "] is ",
            weights[k], ", expected a finite number ", zero_allowed ? "not below zero" : "above zero");
  }
}

std::vector<double> or_ones(const std::vector<double>& given, Index size) {
  return given.empty() ? std::vector<double>(static_cast<std::size_t>(size), 1.0) : given;
}

}  // namespace

ClassBlocks::ClassBlocks(const RecursiveProblem& problem) : problem_(problem) {
  const Index n = rows(), C = problem.classes;
  require(input_blocks(problem.X) == nullptr, "X has blocks, expected one matrix: put them side by side first");
  require(n >= 1 && n <= std::numeric_limits<std::int32_t>::max(), "X has ", n, " rows, expected 1 to 2^31 - 1");
  require(features() < std::numeric_limits<std::int32_t>::max(), "X has ", features(), " features, too many");
  require(C >= 1, "there are ", C, " classes, expected at least one");
  require(problem.taxonomy == nullptr || problem.taxonomy->classes() == C, "the taxonomy has ",
          problem.taxonomy == nullptr ? 0 : problem.taxonomy->classes(), " classes, expected ", C);
  require(std::isfinite(problem.cost) && problem.cost > 0.0, "C is ", problem.cost,
          ", expected a finite number above zero");
  require(std::isfinite(problem.bias) && problem.bias >= 0.0, "bias is ", problem.bias,
          ", expected a finite number not below zero");
  variances_ = or_ones(problem.variances, nodes());
  problem_.positive_weights = or_ones(problem.positive_weights, C);
  problem_.negative_weights = or_ones(problem.negative_weights, C);
  require_weights("variances", variances_, nodes(), false);
  require_weights("positive_weights", problem_.positive_weights, C, false);
  require_weights("negative_weights", problem_.negative_weights, C, false);

  costs_.assign(static_cast<std::size_t>(n), problem.cost);
  for (Index i = 0; problem.row_weights != nullptr && i < n; ++i) {
    const double weight = problem.row_weights[i];
    require(std::isfinite(weight) && weight >= 0.0, "sample_weight[", i, "] is ", weight,
            ", expected a finite number not below zero");
    costs_[static_cast<std::size_t>(i)] *= weight;
  }
  squared_norms_.resize(static_cast<std::size_t>(n));
  squared_norms(problem.X, squared_norms_.data());
  for (double& norm : squared_norms_) norm += problem.bias * problem.bias;

  class_offsets_.assign(static_cast<std::size_t>(C + 1), 0);
  for (Index i = 0; i < n; ++i) {
    const std::int64_t begin = problem.label_offsets[i], end = problem.label_offsets[i + 1];
    require(begin <= end && (i > 0 || begin == 0), "label offsets must start at 0 and never fall; they go from ", begin,
            " to ", end, " at row ", i);
    for (std::int64_t k = begin; k < end; ++k) {
      const Index label = problem.labels[k];
      require(label >= 0 && label < C, "row ", i, " has the label ", label, ", expected 0 to ", C - 1);
      ++class_offsets_[static_cast<std::size_t>(label + 1)];
    }
  }
  for (std::size_t c = 1; c < class_offsets_.size(); ++c) class_offsets_[c] += class_offsets_[c - 1];
  class_rows_.resize(static_cast<std::size_t>(class_offsets_.back()));
  std::vector<std::int64_t> next(class_offsets_.begin(), class_offsets_.end() - 1);
  for (Index i = 0; i < n; ++i) {
    for (std::int64_t k = problem.label_offsets[i]; k < problem.label_offsets[i + 1]; ++k) {
      class_rows_[static_cast<std::size_t>(next[static_cast<std::size_t>(problem.labels[k])]++)] =
          static_cast<std::int32_t>(i);
    }
  }

  // Without a tree blocks are independent, and narrow ones leave out more rows and keep more threads busy. With one,
  // wide blocks have less to learn from each other.
  const Index lanes = problem.taxonomy == nullptr ? lanes_apart : most_lanes;
  const Index count = (C + lanes - 1) / lanes;
  for (Index b = 0; b < count; ++b) {
    ClassBlock block;
    block.first = b * C / count;
    block.count = (b + 1) * C / count - block.first;
    for (Index p = 0; p < inner(); ++p) {
      const Taxonomy::Branch& branch = problem.taxonomy->branches()[static_cast<std::size_t>(p)];
      const Index begin = std::max<Index>(branch.begin - block.first, 0);
      const Index end = std::min<Index>(branch.end - block.first, block.count);
      if (begin < end) block.ancestors.push_back({p, begin, end});
    }
    blocks_.push_back(std::move(block));
  }
}

LaneProblem ClassBlocks::lanes(const ClassBlock& block, const std::vector<int>* copies,
                               std::vector<std::uint32_t>& positives) const {
  LaneProblem out;
  out.X = problem_.X;
  out.bias = problem_.bias;
  out.loss = problem_.loss;
  out.squared_norms = squared_norms_.data();
  out.costs = costs_.data();
  out.covariance = Matrix<double>(block.count, block.count);
  positives.assign(static_cast<std::size_t>(rows()), 0);
  out.positives = positives.data();
  for (Index l = 0; l < block.count; ++l) {
    const auto c = static_cast<std::size_t>(block.first + l);
    out.positive_factors.push_back(problem_.positive_weights[c]);
    out.negative_factors.push_back(problem_.negative_weights[c]);
    out.covariance.row(l)[l] = leaf_variance(block.first + l);
    for (std::int64_t k = class_offsets_[c]; k < class_offsets_[c + 1]; ++k) {
      std::uint32_t& bits = positives[static_cast<std::size_t>(class_rows_[static_cast<std::size_t>(k)])];
      bits = static_cast<std::uint32_t>(bits | (1u << l));
    }
  }
  if (copies == nullptr) return out;
  for (const Ancestor& above : block.ancestors) {
    const double value = variance(above.node) * (*copies)[static_cast<std::size_t>(above.node)];
    for (Index l = above.begin; l < above.end; ++l) {
      for (Index m = above.begin; m < above.end; ++m) out.covariance.row(l)[m] += value;
    }
  }
  return out;
}

std::vector<SparseColumn> ClassBlocks::feasible(const std::vector<SparseColumn>& duals) const {
  require(static_cast<Index>(duals.size()) == problem_.classes, "start has dual variables of ", duals.size(),
          " classes, expected ", problem_.classes);
  std::vector<SparseColumn> out(duals.size());
  for (std::size_t c = 0; c < duals.size(); ++c) {
    const auto begin = class_rows_.begin() + class_offsets_[c], end = class_rows_.begin() + class_offsets_[c + 1];
    std::int32_t last = -1;
    for (std::size_t k = 0; k < duals[c].indices.size(); ++k) {
      const std::int32_t i = duals[c].indices[k];
      const double value = duals[c].values[k];
      require(i > last && i < rows(), "start: class ", c, " has row ", i, " after ", last,
              ", expected ascending numbers below ", rows());
      require(std::isfinite(value) && value >= 0.0, "start: class ", c, " has the value ", value, " at row ", i,
              ", expected a finite number not below zero");
      last = i;
      const bool is_positive = std::binary_search(begin, end, i);
      const double C = costs_[static_cast<std::size_t>(i)] *
                       (is_positive ? problem_.positive_weights : problem_.negative_weights)[c];
      const double allowed = problem_.loss == Hinge::hinge ? std::min(value, C) : C > 0.0 ? value : 0.0;
      if (allowed == 0.0) continue;
      out[c].indices.push_back(i);
      out[c].values.push_back(allowed);
    }
  }
  return out;
}

template <class T>
void spread(const ClassBlock& block, const std::vector<SparseColumn>& columns, Index width, Buffer<T>& duals) {
  std::fill(duals.begin(), duals.end(), T(0));
  for (Index l = 0; l < block.count; ++l) {
    const SparseColumn& column = columns[static_cast<std::size_t>(block.first + l)];
    for (std::size_t k = 0; k < column.indices.size(); ++k) {
      duals[static_cast<std::size_t>(column.indices[k] * width + l)] = static_cast<T>(column.values[k]);
    }
  }
}

template <class T>
SparseColumn collect(const Buffer<T>& matrix, Index width, Index lane) {
  SparseColumn out;
  const Index rows = static_cast<Index>(matrix.size()) / width;
  for (Index i = 0; i < rows; ++i) {
    const T value = matrix[static_cast<std::size_t>(i * width + lane)];
    if (value == T(0)) continue;
    out.indices.push_back(static_cast<std::int32_t>(i));
    out.values.push_back(static_cast<double>(value));
  }
  return out;
}

template <class T>
void add_to_lanes(const SparseColumn& column, double factor, Index begin, Index end, Index width, T* W) {
  for (std::size_t k = 0; k < column.indices.size(); ++k) {
    const T value = static_cast<T>(factor * column.values[k]);
    T* const row = W + column.indices[k] * width;
    for (Index l = begin; l < end; ++l) row[l] += value;
  }
}

void add(const SparseColumn& column, SparseColumn& to) {
  SparseColumn sum;
  sum.indices.reserve(to.indices.size() + column.indices.size());
  sum.values.reserve(sum.indices.capacity());
  std::size_t a = 0, b = 0;
  while (a < to.indices.size() || b < column.indices.size()) {
    constexpr std::int32_t none = std::numeric_limits<std::int32_t>::max();
    const std::int32_t left = a < to.indices.size() ? to.indices[a] : none;
    const std::int32_t right = b < column.indices.size() ? column.indices[b] : none;
    double value = 0.0;
    if (left <= right) value += to.values[a++];
    if (right <= left) value += column.values[b++];
    sum.indices.push_back(std::min(left, right));
    sum.values.push_back(value);
  }
  to = std::move(sum);
}

SparseColumn scaled(SparseColumn column, double factor) {
  for (double& value : column.values) value *= factor;
  return column;
}

double squared_norm(const SparseColumn& column) {
  double sum = 0.0;
  for (const double value : column.values) sum += value * value;
  return sum;
}

#define TAXOLEARN_INSTANTIATE(T)                                                                   \
  template void spread<T>(const ClassBlock&, const std::vector<SparseColumn>&, Index, Buffer<T>&); \
  template SparseColumn collect<T>(const Buffer<T>&, Index, Index);                                \
  template void add_to_lanes<T>(const SparseColumn&, double, Index, Index, Index, T*);
TAXOLEARN_INSTANTIATE(float)
TAXOLEARN_INSTANTIATE(double)
#undef TAXOLEARN_INSTANTIATE

}  // namespace taxolearn
