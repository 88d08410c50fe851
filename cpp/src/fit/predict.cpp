#include "taxolearn/fit/predict.hpp"

#include <algorithm>
#include <cmath>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/base/product.hpp"
#include "taxolearn/base/vector.hpp"
#include "taxolearn/fit/kernel_product.hpp"
#include "taxolearn/operators/block_sum.hpp"

namespace taxolearn {
namespace {

constexpr Index rows_per_block = 64;
constexpr Index basis_per_tile = 256;

void check_output(Link link, Output output, double temperature) {
  require(has_output(link, output), "this likelihood has no probabilities, only predictors");
  require(temperature > 0.0 && std::isfinite(temperature), "temperature must be positive and finite, got ",
          temperature);
}

/// Adds the intercepts to predictors (count x C) and turns them into what is asked for.
void finish(Index count, Index classes, const double* intercepts, Link link, Output output, double temperature,
            double* u) {
  for (Index i = 0; i < count; ++i) axpy_block(1.0, intercepts, u + i * classes, classes);
  apply_link(link, output, count, classes, u, temperature);
}

template <class U>
void predict_rows(const InputView& X, const DenseView<const U>& weights, const double* intercepts, Link link,
                  Output output, const DenseView<double>& out, const Execution& execution, double temperature) {
  check_output(link, output, temperature);
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
    finish(count, out.cols, intercepts, link, output, temperature, part.data);
    std::copy(scratch.begin(), scratch.end(), out.row(first));
  });
}

}  // namespace

void predict(const InputView& X, DenseView<const double> weights, const double* intercepts, Link link, Output output,
             DenseView<double> out, const Execution& execution, double temperature) {
  predict_rows(X, weights, intercepts, link, output, out, execution, temperature);
}
void predict(const InputView& X, DenseView<const float> weights, const double* intercepts, Link link, Output output,
             DenseView<double> out, const Execution& execution, double temperature) {
  predict_rows(X, weights, intercepts, link, output, out, execution, temperature);
}

void predict(const InputView& X, const std::vector<Term>& terms, const std::vector<Index>& kernel_of,
             const Coupling* coupling, const double* intercepts, Link link, Output output, DenseView<double> out,
             const Execution& execution, double temperature) {
  require(!terms.empty(), "there is no kernel to predict with");
  check_output(link, output, temperature);
  require(out.stride == out.cols, "out must be contiguous");
  const KernelColumns columns(kernel_of, static_cast<Index>(terms.size()));
  const bool own = !kernel_of.empty();
  const Index width = own ? columns.size() : out.cols;
  require(!own || width == (coupling == nullptr ? out.cols : coupling->factors()), "kernels are assigned to ", width,
          " functions, expected ", coupling == nullptr ? out.cols : coupling->factors());
  std::vector<std::unique_ptr<KernelEntries<double>>> entries;
  std::vector<InputRows> rows, bases;
  std::vector<InputView> linear;  // blocks that have weights
  rows.reserve(terms.size());
  bases.reserve(terms.size());
  for (std::size_t l = 0; l < terms.size(); ++l) {
    const Term& term = terms[l];
    const Index functions = own ? columns.begin[l + 1] - columns.begin[l] : width;
    require_shape("coefficients", term.coefficients, input_rows(term.basis), functions);
    const bool weighted = term.weights.rows > 0;
    require(!weighted || is_partly_linear(*term.kernel),
            "there are weights, but no linear block beside others in the kernel");
    linear.push_back(weighted ? linear_blocks(*term.kernel, X) : X);
    if (weighted) require_shape("weights", term.weights, input_features(linear.back()), functions);
    rows.push_back(InputRows{weighted ? other_blocks(*term.kernel, X) : X, {}});
    bases.push_back(InputRows{weighted ? other_blocks(*term.kernel, term.basis) : term.basis, {}});
    const std::shared_ptr<const Kernel> kernel = weighted ? other_kernels(*term.kernel) : term.kernel;
    entries.push_back(kernel_entries<double>(*kernel, rows.back(), bases.back(), execution));
  }
  const Blocks blocks(out.rows, rows_per_block);
  parallel_for(blocks.number(), execution, [&](Index block) {
    thread_local Buffer<double> tile, functions, classes;
    const Index first = blocks.first(block);
    const Index count = blocks.length(block);
    tile.resize(static_cast<std::size_t>(count * basis_per_tile));
    functions.assign(static_cast<std::size_t>(count * width), 0.0);
    for (std::size_t l = 0; l < terms.size(); ++l) {
      const DenseView<const double>& A = terms[l].coefficients;
      const DenseView<double> sum(functions.data() + (own ? columns.begin[l] : 0), count, A.cols, width);
      const Blocks tiles(A.rows, basis_per_tile);
      for (Index t = 0; t < tiles.number(); ++t) {
        const DenseView<double> part(tile.data(), count, tiles.length(t));
        entries[l]->block(first, tiles.first(t), part);
        add_product(Product::AB, part, row_block(A, tiles.first(t), part.cols), sum);
      }
      if (terms[l].weights.rows == 0) continue;
      Matrix<double> product(count, A.cols);
      expand_rows(linear[l], first, terms[l].weights, product.view());
      for (Index i = 0; i < count; ++i) axpy_block(1.0, product.row(i), sum.row(i), A.cols);
    }
    classes.resize(static_cast<std::size_t>(count * out.cols));
    if (own) {
      from_kernel_columns(coupling, columns, count, functions.data(), classes.data());
    } else {
      std::copy(functions.begin(), functions.end(), classes.begin());
    }
    finish(count, out.cols, intercepts, link, output, temperature, classes.data());
    std::copy(classes.begin(), classes.end(), out.row(first));
  });
}

}  // namespace taxolearn
