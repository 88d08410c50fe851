#include <Eigen/Core>
#include <algorithm>

#include "taxolearn/base/check.hpp"
#include "taxolearn/klr/problem.hpp"
#include "taxolearn/likelihood/softmax.hpp"

namespace taxolearn {
namespace {

constexpr Index rows_per_block = 64;

}  // namespace

void predict(const InputView& X, DenseView<const double> weights, const double* intercepts, Output output,
             DenseView<double> out, const Execution& execution) {
  require(input_features(X) == weights.rows, "X has ", input_features(X), " features, expected ", weights.rows);
  require_shape("out", out, input_rows(X), weights.cols);
  require(out.stride == out.cols, "out must be contiguous");
  const Blocks blocks(out.rows, rows_per_block);
  parallel_for(blocks.number(), execution, [&](Index block) {
    const Index first = blocks.first(block);
    const Index count = blocks.length(block);
    // Scratch on a cache line: vector loops treat the elements before the first one differently, and answers must not
    // depend on where the caller's array lies.
    thread_local Buffer<double> scratch;
    scratch.resize(static_cast<std::size_t>(count * out.cols));
    const DenseView<double> part(scratch.data(), count, out.cols);
    expand_rows(X, first, weights, part);
    for (Index i = 0; i < count; ++i) {
      Eigen::Map<Eigen::ArrayXd>(part.row(i), part.cols) += Eigen::Map<const Eigen::ArrayXd>(intercepts, part.cols);
    }
    if (output == Output::probability) softmax_rows(count, out.cols, part.data);
    if (output == Output::log_probability) log_softmax_rows(count, out.cols, part.data);
    std::copy(scratch.begin(), scratch.end(), out.row(first));
  });
}

}  // namespace taxolearn
