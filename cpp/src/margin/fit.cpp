#include "taxolearn/margin/fit.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "products.hpp"
#include "taxolearn/base/check.hpp"
#include "taxolearn/margin/labelings.hpp"

namespace taxolearn {
namespace {

/// Checks the labels and answers for them.
class LabelingOracle final : public VertexOracle {
 public:
  explicit LabelingOracle(const MarginProblem& problem)
      : problem_(problem), forest_(*problem.forest), loss_{problem.loss, problem.scales} {
    const Index n = input_rows(problem.X), k = forest_.nodes();
    require(problem.scales.empty() || static_cast<Index>(problem.scales.size()) == k, "scales has ",
            problem.scales.size(), " elements, expected one for each of the ", k, " nodes");
    for (const double scale : problem.scales) {
      require(std::isfinite(scale) && scale > 0.0, "scales has ", scale, ", expected finite numbers above zero");
    }
    std::vector<std::int8_t> signs(static_cast<std::size_t>(forest_.components()));
    for (Index i = 0; i < n; ++i) {
      require(problem.label_offsets[i] <= problem.label_offsets[i + 1], "label_offsets fall at row ", i);
      for (std::int64_t at = problem.label_offsets[i]; at < problem.label_offsets[i + 1]; ++at) {
        require(problem.labels[at] >= 0 && problem.labels[at] < k, "labels: row ", i, " has ", problem.labels[at],
                ", expected numbers from 0 to ", k - 1);
      }
      truth(i, signs.data());
      for (Index j = forest_.tops(); j < k; ++j) {
        require(signs[static_cast<std::size_t>(j)] < 0 || signs[static_cast<std::size_t>(forest_.parent(j))] > 0,
                "labels: row ", i, " has node ", j, " but not its parent ", forest_.parent(j));
      }
    }
  }

  const std::vector<double>& omega() const override { return forest_.omega(); }

  void truth(Index row, std::int8_t* signs) const override {
    std::fill_n(signs, forest_.nodes(), std::int8_t{-1});
    for (std::int64_t at = problem_.label_offsets[row]; at < problem_.label_offsets[row + 1]; ++at) {
      signs[problem_.labels[at]] = 1;
    }
    forest_.complete(signs);
  }

  double best(Index row, const double* gradient, std::int8_t* signs) const override {
    std::vector<std::int8_t> own(static_cast<std::size_t>(forest_.components()));
    truth(row, own.data());
    return best_labeling(forest_, loss_, gradient, own.data(), signs);
  }

 private:
  const MarginProblem& problem_;
  const LabelForest& forest_;
  LossOfLabelings loss_;
};

std::vector<double> costs_of(const MarginProblem& problem) {
  const Index n = input_rows(problem.X);
  require(std::isfinite(problem.cost) && problem.cost > 0.0, "C is ", problem.cost,
          ", expected a finite number above zero");
  require(std::isfinite(problem.bias) && problem.bias >= 0.0, "bias is ", problem.bias,
          ", expected a finite number of at least zero");
  std::vector<double> costs(static_cast<std::size_t>(n), problem.cost);
  for (Index i = 0; problem.row_weights != nullptr && i < n; ++i) {
    require(std::isfinite(problem.row_weights[i]) && problem.row_weights[i] >= 0.0, "sample_weight: row ", i, " has ",
            problem.row_weights[i], ", expected a finite number of at least zero");
    costs[static_cast<std::size_t>(i)] *= problem.row_weights[i];
  }
  return costs;
}

void require_duals(const MarginDuals& duals, Index rows, Index components) {
  require(static_cast<Index>(duals.size()) == rows, "start has ", duals.size(), " rows, expected ", rows);
  for (const VertexWeights& row : duals) {
    const std::size_t count = row.weights.size();
    require(row.losses.size() == count && row.signs.size() == count * static_cast<std::size_t>(components),
            "start: a row has ", count, " weights, ", row.losses.size(), " losses and ", row.signs.size(), " signs");
    double sum = 0.0;
    for (const double weight : row.weights) {
      require(weight >= 0.0, "start has a weight of ", weight, ", expected at least zero");
      sum += weight;
    }
    require(sum <= 1.0 + 1e-9, "start: the weights of a row add up to ", sum, ", expected at most 1");
  }
}

}  // namespace

MarginResult fit_margin(const MarginProblem& problem, const ConditionalGradientSettings& settings, MarginDuals& duals,
                        const Execution& execution) {
  const auto begin = std::chrono::steady_clock::now();
  const LabelingOracle oracle(problem);
  const std::vector<double> costs = costs_of(problem);
  const Index n = input_rows(problem.X), components = problem.forest->components();
  if (duals.empty()) duals.resize(static_cast<std::size_t>(n));
  require_duals(duals, n, components);
  const bool linear = problem.kernel == nullptr;
  const std::unique_ptr<PredictingProducts> products =
      linear ? linear_products(problem.X, components)
             : kernel_products(*problem.kernel, problem.X, components, problem.memory_limit, execution);
  MarginResult result;
  result.run = maximize_over_vertices(oracle, *products, costs, problem.bias, settings, duals, execution);
  Matrix<double>& out = linear ? result.weights : result.multipliers;
  out = products->take();
  for (Index r = 0; r < components; ++r) {
    const double omega = oracle.omega()[static_cast<std::size_t>(r)];
    for (Index k = 0; k < out.rows(); ++k) out.row(k)[r] *= omega;
    result.intercepts.push_back(problem.bias * problem.bias * omega * result.run.sums[static_cast<std::size_t>(r)]);
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace taxolearn
