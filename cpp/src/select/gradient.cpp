#include "gradient.hpp"

#include <algorithm>

#include "taxolearn/base/vector.hpp"
#include "taxolearn/fit/kernel_product.hpp"

namespace taxolearn {
namespace {

constexpr Index parts = 16;         // sums of gradients, whatever the number of threads
constexpr Index rows_at_once = 64;  // that a coupling gets, so that its products are those of matrices

/// gradient += sum over rows of body(first row, rows, partial gradient).
template <class Body>
void sum_over_rows(Index rows, std::vector<double>& gradient, const Execution& execution, const Body& body) {
  const Blocks blocks(rows, (rows + parts - 1) / parts);
  Matrix<double> partial(blocks.number(), static_cast<Index>(gradient.size()));
  parallel_for(blocks.number(), execution,
               [&](Index block) { body(blocks.first(block), blocks.length(block), partial.row(block)); });
  for (Index block = 0; block < blocks.number(); ++block)
    axpy_block(1.0, partial.row(block), gradient.data(), partial.cols());
}

template <class T>
Matrix<T> rounded(const Matrix<double>& from, const Execution& execution) {
  Matrix<T> to(from.rows(), from.cols());
  convert(from.data(), to.data(), from.size(), execution);
  return to;
}

void add(const std::vector<double>& from, std::vector<double>& to) {
  to.resize(from.size(), 0.0);
  for (std::size_t k = 0; k < from.size(); ++k) to[k] += from[k];
}

/// One kernel for all: with H = M f, the derivatives by G's parameters are those of tr(alpha G H^T).
template <class T>
void add_shared(const Prior& prior, Operator<T>& op, const Matrix<double>& alpha, const Matrix<double>& f,
                bool kernel_gradient, Criterion& out, const Execution& execution) {
  const Coupling& coupling = *prior.coupling;
  const Matrix<T> F = rounded<T>(f, execution);
  Matrix<T> images(f.rows(), f.cols());
  op.apply(F.view(), images.view(), nullptr, execution);
  sum_over_rows(f.rows(), out.function_gradient, execution, [&](Index first, Index count, double* gradient) {
    Buffer<double> some(static_cast<std::size_t>(std::min(count, rows_at_once) * f.cols()));
    for (Index i = first; i < first + count; i += rows_at_once) {
      const Index number = std::min(rows_at_once, first + count - i);
      convert_block(images.row(i), some.data(), number * f.cols());
      coupling.bilinear_grad(number, alpha.row(i), some.data(), gradient);
    }
  });
  if (!kernel_gradient || out.kernel_gradient.empty()) return;  // the linear kernel of one matrix
  Matrix<T> E = rounded<T>(alpha, execution);
  const Blocks blocks(E.rows(), std::max<Index>(1, vector_block / E.cols()));
  parallel_for(blocks.number(), execution,
               [&](Index block) { coupling.apply(blocks.length(block), E.row(blocks.first(block))); });
  std::vector<double> gradient(static_cast<std::size_t>(op.parameters()), 0.0);
  op.bilinear_grad(E.view(), F.view(), gradient.data(), execution);
  add(gradient, out.kernel_gradient.front());
}

/// Kernels of their own: every column of R meets its kernel.
template <class T>
void add_own(const Prior& prior, const Coupling& coupling, const std::vector<Operator<T>*>& operators,
             const Matrix<double>& alpha, const Matrix<double>& f, bool kernel_gradient, Criterion& out,
             const Execution& execution) {
  const KernelColumns columns(prior.kernel_of, static_cast<Index>(operators.size()));
  const Index n = f.rows();
  const Index width = columns.size();
  Matrix<T> E(n, width), F(n, width), images(n, width);
  const Blocks blocks(n, std::max<Index>(1, vector_block / width));
  parallel_for(blocks.number(), execution, [&](Index block) {
    thread_local Buffer<double> scratch;
    const Index first = blocks.first(block);
    const Index count = blocks.length(block);
    scratch.resize(static_cast<std::size_t>(count * width));
    to_kernel_columns(prior.coupling, columns, count, alpha.row(first), scratch.data());
    convert_block(scratch.data(), E.row(first), count * width);
    to_kernel_columns(prior.coupling, columns, count, f.row(first), scratch.data());
    convert_block(scratch.data(), F.row(first), count * width);
  });
  const auto part = [&](Matrix<T>& matrix, std::size_t l) {
    return DenseView<T>(matrix.data() + columns.begin[l], n, columns.begin[l + 1] - columns.begin[l], width);
  };
  for (std::size_t l = 0; l < operators.size(); ++l) {
    if (columns.begin[l] == columns.begin[l + 1]) continue;
    operators[l]->apply(part(F, l), part(images, l), nullptr, execution);
    if (!kernel_gradient) continue;
    std::vector<double> gradient(static_cast<std::size_t>(operators[l]->parameters()), 0.0);
    operators[l]->bilinear_grad(part(E, l), part(F, l), gradient.data(), execution);
    add(gradient, out.kernel_gradient[l]);
  }
  std::vector<double> by_column(static_cast<std::size_t>(width), 0.0);
  sum_over_rows(n, by_column, execution, [&](Index first, Index count, double* gradient) {
    for (Index i = first; i < first + count; ++i) {
      const T* const left = E.row(i);
      const T* const right = images.row(i);
#pragma omp simd
      for (Index k = 0; k < width; ++k) gradient[k] += static_cast<double>(left[k]) * static_cast<double>(right[k]);
    }
  });
  std::vector<double> by_factor(static_cast<std::size_t>(coupling.factors()), 0.0);
  for (Index k = 0; k < width; ++k) {
    const Index factor = columns.factor[static_cast<std::size_t>(k)] % coupling.factors();
    by_factor[static_cast<std::size_t>(factor)] += by_column[static_cast<std::size_t>(k)];
  }
  coupling.factor_grad(by_factor.data(), out.function_gradient.data());
}

/// By the log variances of blocks: inner products of the rows of two matrices, by features.
void add_blocks(const InputView& X, DenseView<const double> left, DenseView<const double> right, Criterion& out,
                const Execution& execution) {
  std::vector<double> gradient;
  for (const InputBlock& each : *input_blocks(X)) {
    const Index first = each.first * left.cols;
    gradient.push_back(dot(left.data + first, right.data + first, input_features(each.X) * left.cols, execution));
  }
  add(gradient, out.kernel_gradient.front());
}

/// By the intercept's log variance.
void add_intercept(const Prior& prior, const Matrix<double>& alpha, const Matrix<double>& f, Criterion& out,
                   const Execution& execution) {
  std::vector<double> left(static_cast<std::size_t>(f.cols())), right(left.size());
  column_sums(alpha.view(), left.data(), execution);
  column_sums(f.view(), right.data(), execution);
  out.intercept_variance_gradient += prior.intercept_variance * dot_block(left.data(), right.data(), f.cols());
}

}  // namespace

template <class T>
void add_gradient(const Prior& prior, const Coupling& coupling, const std::vector<Operator<T>*>& operators,
                  const Matrix<double>& alpha, const Matrix<double>& f, bool kernel_gradient, Criterion& out,
                  const Execution& execution) {
  add_intercept(prior, alpha, f, out, execution);
  if (prior.kernel_of.empty()) {
    add_shared(prior, *operators.front(), alpha, f, kernel_gradient, out, execution);
  } else {
    add_own(prior, coupling, operators, alpha, f, kernel_gradient, out, execution);
  }
}

void add_gradient(const InputView& X, const Coupling& coupling, const Buffer<double>& point,
                  const Buffer<double>& adjoint, bool kernel_gradient, Criterion& out, const Execution& execution) {
  const Index factors = coupling.factors();
  const Index rows = (static_cast<Index>(point.size()) - coupling.classes()) / factors;
  const Index last = rows * factors;
  out.intercept_variance_gradient += dot_block(point.data() + last, adjoint.data() + last, coupling.classes());
  std::vector<double> by_factor(static_cast<std::size_t>(factors), 0.0);
  sum_over_rows(rows, by_factor, execution, [&](Index first, Index count, double* gradient) {
    for (Index i = first; i < first + count; ++i) {
      const double* const left = point.data() + i * factors;
      const double* const right = adjoint.data() + i * factors;
      for (Index k = 0; k < factors; ++k) gradient[k] += left[k] * right[k];
    }
  });
  coupling.factor_grad(by_factor.data(), out.function_gradient.data());
  if (kernel_gradient && input_blocks(X) != nullptr)
    add_blocks(X, {point.data(), rows, factors}, {adjoint.data(), rows, factors}, out, execution);
}

template <class T>
void add_gradient(const InputView& X, const Prior& prior, FeatureOperator<T>& features, const Matrix<double>& alpha,
                  const Matrix<double>& f, bool kernel_gradient, Criterion& out, const Execution& execution) {
  add_intercept(prior, alpha, f, out, execution);
  Matrix<T> left(features.features(), f.cols()), right(left.rows(), left.cols());
  features.project(rounded<T>(alpha, execution).view(), left.view(), execution);
  features.project(rounded<T>(f, execution).view(), right.view(), execution);
  sum_over_rows(left.rows(), out.function_gradient, execution, [&](Index first, Index count, double* gradient) {
    const auto size = static_cast<std::size_t>(std::min(count, rows_at_once) * f.cols());
    Buffer<double> E(size), H(size);
    for (Index j = first; j < first + count; j += rows_at_once) {
      const Index number = std::min(rows_at_once, first + count - j);
      convert_block(left.row(j), E.data(), number * f.cols());
      convert_block(right.row(j), H.data(), number * f.cols());
      prior.coupling->bilinear_grad(number, E.data(), H.data(), gradient);
    }
  });
  if (!kernel_gradient || input_blocks(X) == nullptr) return;
  const auto in_double = [&](Matrix<T>& from) {
    Matrix<double> to(from.rows(), from.cols());
    convert(from.data(), to.data(), from.size(), execution);
    return to;
  };
  Matrix<double> E = in_double(left);
  const Blocks blocks(E.rows(), std::max<Index>(1, vector_block / E.cols()));
  parallel_for(blocks.number(), execution,
               [&](Index block) { prior.coupling->apply(blocks.length(block), E.row(blocks.first(block))); });
  add_blocks(X, E.view(), in_double(right).view(), out, execution);
}

template void add_gradient(const Prior&, const Coupling&, const std::vector<Operator<float>*>&, const Matrix<double>&,
                           const Matrix<double>&, bool, Criterion&, const Execution&);
template void add_gradient(const Prior&, const Coupling&, const std::vector<Operator<double>*>&, const Matrix<double>&,
                           const Matrix<double>&, bool, Criterion&, const Execution&);
template void add_gradient(const InputView&, const Prior&, FeatureOperator<float>&, const Matrix<double>&,
                           const Matrix<double>&, bool, Criterion&, const Execution&);
template void add_gradient(const InputView&, const Prior&, FeatureOperator<double>&, const Matrix<double>&,
                           const Matrix<double>&, bool, Criterion&, const Execution&);

}  // namespace taxolearn
