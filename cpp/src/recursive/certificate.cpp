#include "certificate.hpp"

#include <algorithm>

#include "taxolearn/base/matrix_block.hpp"

namespace taxolearn {
namespace {

constexpr Index blocks_per_round = 64;  // whose sums wait for being added up
constexpr Index rows_per_chunk = 256;

struct Terms {
  double loss = 0.0;
  double gap = 0.0;

  Terms& operator+=(const Terms& other) {
    loss += other.loss;
    gap += other.gap;
    return *this;
  }
};

/// Fenchel's inequality row by row: C loss(u) + conjugate(alpha) - alpha y u >= 0, and these add up to P - D at w = G a.
Terms terms_of(const LaneProblem& lanes, const Buffer<double>& duals, const Matrix<double>& W) {
  const Index n = input_rows(lanes.X), d = input_features(lanes.X), width = lanes.width();
  const bool squared = lanes.loss == Hinge::squared;
  auto u = Matrix<double>::uninitialised(rows_per_chunk, width);
  const Blocks chunks(n, rows_per_chunk);
  Terms sum;
  for (Index chunk = 0; chunk < chunks.number(); ++chunk) {
    const DenseView<double> part = row_block(u.view(), 0, chunks.length(chunk));
    expand_rows(lanes.X, chunks.first(chunk), row_block(W.view(), 0, d), part);
    for (Index k = 0; k < part.rows; ++k) {
      const Index i = chunks.first(chunk) + k;
      for (Index l = 0; l < lanes.lanes(); ++l) {
        const bool is_positive = ((lanes.positives[i] >> l) & 1) != 0;
        const double C = lanes.costs[i] * (is_positive ? lanes.positive_factors : lanes.negative_factors)[l];
        const double score = part.row(k)[l] + lanes.bias * W.row(d)[l];
        const double slack = is_positive ? 1.0 - score : 1.0 + score;
        const double above = std::max(slack, 0.0);
        const double alpha = duals[static_cast<std::size_t>(i * width + l)];
        const double loss = C * above * (squared ? above : 1.0);
        sum.loss += loss;
        sum.gap += loss - alpha * slack + (squared && C > 0.0 ? alpha * alpha / (4.0 * C) : 0.0);
      }
    }
  }
  return sum;
}

}  // namespace

Certificate certify(const ClassBlocks& blocks, const std::vector<SparseColumn>& duals, const Execution& execution) {
  const Index n = blocks.rows(), d = blocks.features(), inner = blocks.inner();
  Certificate out;
  out.weights.resize(static_cast<std::size_t>(blocks.nodes()));
  const auto of_node = [&](Index node) -> SparseColumn& { return out.weights[static_cast<std::size_t>(node)]; };
  const auto count = static_cast<Index>(blocks.blocks().size());

  for (Index first = 0; first < count; first += blocks_per_round) {
    const Index round = std::min(blocks_per_round, count - first);
    std::vector<std::vector<SparseColumn>> sums(static_cast<std::size_t>(round));
    parallel_for(round, execution, [&](Index b) {
      const ClassBlock& block = blocks.blocks()[static_cast<std::size_t>(first + b)];
      std::vector<std::uint32_t> positives;
      const LaneProblem lanes = blocks.lanes(block, nullptr, positives);
      const Index width = lanes.width();
      Buffer<double> alpha(static_cast<std::size_t>(n * width)), W(static_cast<std::size_t>((d + 1) * width), 0.0);
      spread(block, duals, width, alpha);
      add_dual_rows(lanes, alpha.data(), W.data());
      for (Index l = 0; l < block.count; ++l) of_node(inner + block.first + l) = collect(W, width, l);
      for (const Ancestor& above : block.ancestors) {
        SparseColumn sum;
        for (Index f = 0; f <= d; ++f) {
          double value = 0.0;
          for (Index l = above.begin; l < above.end; ++l) value += W[static_cast<std::size_t>(f * width + l)];
          if (value == 0.0) continue;
          sum.indices.push_back(static_cast<std::int32_t>(f));
          sum.values.push_back(value);
        }
        sums[static_cast<std::size_t>(b)].push_back(std::move(sum));
      }
    });
    for (Index b = 0; b < round; ++b) {
      const ClassBlock& block = blocks.blocks()[static_cast<std::size_t>(first + b)];
      for (std::size_t k = 0; k < block.ancestors.size(); ++k) {
        add(sums[static_cast<std::size_t>(b)][k], of_node(block.ancestors[k].node));
      }
    }
  }
  double penalty = 0.0;
  for (Index node = 0; node < blocks.nodes(); ++node) {
    penalty += 0.5 * blocks.variance(node) * squared_norm(of_node(node));
    for (double& value : of_node(node).values) value *= blocks.variance(node);
  }

  std::vector<Terms> parts(static_cast<std::size_t>(count));
  parallel_for(count, execution, [&](Index b) {
    const ClassBlock& block = blocks.blocks()[static_cast<std::size_t>(b)];
    std::vector<std::uint32_t> positives;
    const LaneProblem lanes = blocks.lanes(block, nullptr, positives);
    const Index width = lanes.width();
    Buffer<double> alpha(static_cast<std::size_t>(n * width));
    spread(block, duals, width, alpha);
    Matrix<double> W(d + 1, width);
    for (const Ancestor& above : block.ancestors) {
      add_to_lanes(of_node(above.node), 1.0, above.begin, above.end, width, W.data());
    }
    for (Index l = 0; l < block.count; ++l) {
      add_to_lanes(of_node(inner + block.first + l), 1.0, l, l + 1, width, W.data());
    }
    parts[static_cast<std::size_t>(b)] = terms_of(lanes, alpha, W);
  });
  Terms sum;
  for (const Terms& part : parts) sum += part;
  out.objective = penalty + sum.loss;
  out.gap = sum.gap;
  return out;
}

}  // namespace taxolearn
