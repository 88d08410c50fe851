// Inputs in blocks that tests share, and the same columns in one matrix.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "problems.hpp"
#include "taxolearn/fit/settings.hpp"
#include "taxolearn/kernels/functions.hpp"
#include "taxolearn/likelihood/softmax.hpp"
#include "trees.hpp"

namespace taxolearn::tests {

constexpr Index block_rows = 30;
constexpr Index block_classes = 4;

/// Sparse words in single precision, dense numbers in double precision, dense ones in single precision.
struct Three {
  Inputs words{block_rows, 25, 5, 1};
  Inputs numbers{block_rows, 6, 6, 2};
  Inputs more{block_rows, 4, 3, 3};

  InputView view() const { return side_by_side({words.views[0], numbers.views[5], more.views[4]}); }

  MatrixXd glued(const std::vector<double>& variances) const {
    MatrixXd out(block_rows, 35);
    out << std::sqrt(variances[0]) * words.X, std::sqrt(variances[1]) * numbers.X, std::sqrt(variances[2]) * more.X;
    return out;
  }
};

inline const std::vector<double> some{0.7, 2.5, 0.3};
inline const std::vector<double> none{1.0, 1.0, 1.0};

inline std::vector<double> exponentials(const std::vector<double>& logs) {
  std::vector<double> out;
  for (const double log : logs) out.push_back(std::exp(log));
  return out;
}

inline std::shared_ptr<const Kernel> linear_blocks(const std::vector<double>& variances) {
  std::vector<std::shared_ptr<const Kernel>> parts;
  for (const double variance : variances) parts.push_back(make_linear_kernel(variance));
  return make_block_kernel(parts);
}

/// Linear on words, radial on numbers, Matern on the others: log (v, l, v, l, v).
inline std::shared_ptr<const Kernel> mixed_blocks(const std::vector<double>& logs) {
  const std::vector<double> at = exponentials(logs);
  return make_block_kernel({make_linear_kernel(at[0]), make_stationary_kernel(StationaryForm::rbf, {at[1]}, at[2]),
                            make_stationary_kernel(StationaryForm::matern32, {at[3]}, at[4])});
}
inline const std::vector<double> mixed_logs{-0.4, 0.3, 0.6, 0.1, -0.2};

inline MatrixXd mixed_matrix(const Three& inputs, const std::vector<double>& logs) {
  const std::vector<double> at = exponentials(logs);
  const std::vector<std::shared_ptr<const Kernel>> parts{
      make_linear_kernel(at[0]), make_stationary_kernel(StationaryForm::rbf, {at[1]}, at[2]),
      make_stationary_kernel(StationaryForm::matern32, {at[3]}, at[4])};
  const std::vector<InputView> views{inputs.words.sparse(), inputs.numbers.dense(), inputs.more.dense()};
  MatrixXd sum = MatrixXd::Zero(block_rows, block_rows);
  for (std::size_t b = 0; b < parts.size(); ++b) {
    Matrix<double> K(block_rows, block_rows);
    const InputRows all{views[b], {}};
    kernel_matrix<double>(*parts[b], all, all, K.view(), one);
    sum += dense(K.view());
  }
  return sum;
}

struct Labels {
  std::vector<std::int32_t> labels = Random(5).labels(block_rows, block_classes);
  std::vector<double> weights = Random(6).weights(block_rows);
  Softmax likelihood{labels.data(), block_rows, block_classes, weights.data()};
  TreeCoupling tree{std::make_shared<const Taxonomy>(std::vector<Index>{-1, 0, 0, 1, 1, 2, 2}),
                    TiedVariances{{0.0, 0.8, 1.2, 0.5, 0.9, 1.1, 0.4}, {-1, 0, 1, 2, 3, 4, 5}}};
};

inline FitSettings precise(Space space, Precision precision = Precision::double_) {
  FitSettings settings;
  settings.tolerance = precision == Precision::single ? 1e-6 : 1e-13;
  settings.space = space;
  settings.precision = precision;
  return settings;
}

}  // namespace taxolearn::tests
