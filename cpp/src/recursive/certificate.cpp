#include "certificate.hpp"

#include <algorithm>

#include "part_sums.hpp"

namespace taxolearn {
namespace {

constexpr Index rows_per_block = 64;
constexpr Index blocks_per_round = 16;  // whose steps wait for being added up

PairTerms terms_of_row(const ClassBlocks& blocks, Index i, const SparseColumn& duals, const Buffer<double>& z) {
  PairTerms out;
  const std::vector<std::int32_t>& labels = blocks.labels(i);
  std::size_t label = 0, dual = 0;
  for (Index c = 0; c < blocks.classes(); ++c) {
    const bool is_positive = label < labels.size() && labels[label] == c;
    const bool has_dual = dual < duals.indices.size() && duals.indices[dual] == c;
    const double u = z[static_cast<std::size_t>(blocks.factor().place(c))];
    const double slack = is_positive ? 1.0 - u : 1.0 + u;
    if (has_dual || slack > 0.0) {
      out.add(blocks.problem().loss, blocks.cost(i, c, is_positive), has_dual ? duals.values[dual] : 0.0, slack);
    }
    label += is_positive ? 1 : 0;
    dual += has_dual ? 1 : 0;
  }
  return out;
}

}  // namespace

template <class T>
void add_duals(const ClassBlocks& blocks, const std::vector<SparseColumn>& duals, FeatureRows<T>& parts,
               const Execution& execution) {
  for (Index first = 0; first < blocks.rows(); first += rows_per_block * blocks_per_round) {
    const Index count = std::min(rows_per_block * blocks_per_round, blocks.rows() - first);
    std::vector<PartSteps> steps(static_cast<std::size_t>(count));
    const Blocks chunks(count, rows_per_block);
    parallel_for(chunks.number(), execution, [&](Index chunk) {
      PartSums sums(blocks.factor());
      for (Index k = 0; k < chunks.length(chunk); ++k) {
        const Index at = chunks.first(chunk) + k, i = first + at;
        const SparseColumn& row = duals[static_cast<std::size_t>(i)];
        const std::vector<std::int32_t>& labels = blocks.labels(i);
        for (std::size_t e = 0; e < row.indices.size(); ++e) {
          const bool is_positive = std::binary_search(labels.begin(), labels.end(), row.indices[e]);
          sums.add(row.indices[e], is_positive ? row.values[e] : -row.values[e]);
        }
        steps[static_cast<std::size_t>(at)] = sums.take(i);
      }
    });
    parts.add(steps, execution);
  }
}

template void add_duals<float>(const ClassBlocks&, const std::vector<SparseColumn>&, FeatureRows<float>&,
                               const Execution&);
template void add_duals<double>(const ClassBlocks&, const std::vector<SparseColumn>&, FeatureRows<double>&,
                                const Execution&);

Certificate certify(const ClassBlocks& blocks, const std::vector<SparseColumn>& duals, const Execution& execution) {
  const ClassFactor& factor = blocks.factor();
  Certificate out;
  out.parts = std::make_unique<FeatureRows<double>>(blocks.problem().X, blocks.problem().bias, factor.parts());
  add_duals(blocks, duals, *out.parts, execution);
  double penalty = 0.0;
  for (Index f = 0; f < out.parts->features(); ++f) {
    out.parts->for_parts(f,
                         [&](std::int32_t k, double value) { penalty += value * value / (2.0 * factor.variance(k)); });
  }
  const PairTerms sum =
      parallel_sum<PairTerms>(Blocks(blocks.rows(), rows_per_block), execution, [&](Index first, Index length) {
        Buffer<double> z(static_cast<std::size_t>(out.parts->width()));
        PairTerms own;
        for (Index i = first; i < first + length; ++i) {
          out.parts->product(i, z.data());
          factor.to_nodes(z.data());
          own += terms_of_row(blocks, i, duals[static_cast<std::size_t>(i)], z);
        }
        return own;
      });
  out.objective = penalty + sum.loss;
  out.gap = sum.gap;
  return out;
}

std::vector<SparseColumn> weights_of(const ClassBlocks& blocks, const FeatureRows<double>& parts) {
  const ClassFactor& factor = blocks.factor();
  const bool is_graph = blocks.problem().graph != nullptr;
  std::vector<SparseColumn> out(static_cast<std::size_t>(is_graph ? blocks.classes() : factor.parts()));
  const auto put = [&](Index column, Index feature, double value) {
    if (value == 0.0) return;
    out[static_cast<std::size_t>(column)].indices.push_back(static_cast<std::int32_t>(feature));
    out[static_cast<std::size_t>(column)].values.push_back(value);
  };
  std::vector<double> z(static_cast<std::size_t>(factor.parts()));
  for (Index f = 0; f < parts.features(); ++f) {
    if (!is_graph) {
      parts.for_parts(f, [&](std::int32_t k, double value) { put(k, f, value); });
      continue;
    }
    std::fill(z.begin(), z.end(), 0.0);
    parts.for_parts(f, [&](std::int32_t k, double value) { z[static_cast<std::size_t>(k)] = value; });
    factor.to_nodes(z.data());
    for (Index c = 0; c < blocks.classes(); ++c) put(c, f, z[static_cast<std::size_t>(factor.place(c))]);
  }
  return out;
}

}  // namespace taxolearn
