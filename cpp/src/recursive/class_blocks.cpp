#include "class_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "taxolearn/base/check.hpp"

namespace taxolearn {
namespace {

constexpr Index lanes_per_block = 16;  // narrow blocks leave out more rows and keep more threads busy

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
  const Taxonomy* const tree = problem.taxonomy;
  require(tree == nullptr || problem.graph == nullptr, "there are a taxonomy and a graph, expected one of them");
  require(problem.graph == nullptr || problem.variances.empty(),
          "variances are given with a graph, whose precision has them already");
  variances_ = or_ones(problem.variances, tree != nullptr ? tree->nodes() : C);
  problem_.positive_weights = or_ones(problem.positive_weights, C);
  problem_.negative_weights = or_ones(problem.negative_weights, C);
  require_weights("variances", variances_, tree != nullptr ? tree->nodes() : C, false);
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

  for (Index i = 0; i < n; ++i) {
    std::vector<std::int32_t> own(problem.labels + problem.label_offsets[i],
                                  problem.labels + problem.label_offsets[i + 1]);
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    labels_.push_back(std::move(own));
  }
  if (problem.graph != nullptr) check_precision(*problem.graph, C);
  factor_ = problem.graph != nullptr ? ClassFactor::of_graph(*problem.graph)
            : tree != nullptr        ? ClassFactor::of_tree(*tree, variances_)
                                     : ClassFactor::of_classes(variances_);
}

LaneProblem ClassBlocks::lanes(const ClassBlock& block, const std::vector<double>& variances,
                               std::vector<std::uint32_t>& positives) const {
  LaneProblem out;
  out.X = problem_.X;
  out.bias = problem_.bias;
  out.loss = problem_.loss;
  out.squared_norms = squared_norms_.data();
  out.costs = costs_.data();
  positives.assign(static_cast<std::size_t>(rows()), 0);
  out.positives = positives.data();
  for (std::size_t l = 0; l < block.size(); ++l) {
    const auto c = static_cast<std::size_t>(block[l]);
    out.positive_factors.push_back(problem_.positive_weights[c]);
    out.negative_factors.push_back(problem_.negative_weights[c]);
    out.variances.push_back(variances[c]);
    for (std::int64_t k = class_offsets_[c]; k < class_offsets_[c + 1]; ++k) {
      std::uint32_t& bits = positives[static_cast<std::size_t>(class_rows_[static_cast<std::size_t>(k)])];
      bits |= 1u << l;
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

std::vector<ClassBlock> in_blocks(const std::vector<Index>& classes) {
  const Blocks blocks(static_cast<Index>(classes.size()), lanes_per_block);
  std::vector<ClassBlock> out;
  for (Index b = 0; b < blocks.number(); ++b) {
    const auto begin = classes.begin() + blocks.first(b);
    out.emplace_back(begin, begin + blocks.length(b));
  }
  return out;
}

std::vector<SparseColumn> transposed(const std::vector<SparseColumn>& columns, Index rows) {
  std::vector<SparseColumn> out(static_cast<std::size_t>(rows));
  for (std::size_t c = 0; c < columns.size(); ++c) {
    for (std::size_t k = 0; k < columns[c].indices.size(); ++k) {
      SparseColumn& row = out[static_cast<std::size_t>(columns[c].indices[k])];
      row.indices.push_back(static_cast<std::int32_t>(c));
      row.values.push_back(columns[c].values[k]);
    }
  }
  return out;
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

}  // namespace taxolearn
