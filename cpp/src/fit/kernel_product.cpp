#include "taxolearn/fit/kernel_product.hpp"

#include <algorithm>

#include "predictor_space.hpp"

namespace taxolearn {
namespace {

template <class T>
void add_shift(const T* shift, Index columns, T* row) {
#pragma omp simd
  for (Index c = 0; c < columns; ++c) row[c] += shift[c];
}

}  // namespace

KernelColumns::KernelColumns(const std::vector<Index>& kernel_of, Index kernels)
    : begin(static_cast<std::size_t>(kernels) + 1, 0), factor(kernel_of.size()) {
  for (const Index l : kernel_of) ++begin[static_cast<std::size_t>(l) + 1];
  for (std::size_t l = 1; l < begin.size(); ++l) begin[l] += begin[l - 1];
  std::vector<Index> place(begin.begin(), begin.end() - 1);
  for (std::size_t f = 0; f < kernel_of.size(); ++f)
    factor[static_cast<std::size_t>(place[static_cast<std::size_t>(kernel_of[f])]++)] = static_cast<Index>(f);
}

void to_kernel_columns(const Coupling* coupling, const KernelColumns& columns, Index count, const double* S,
                       double* out) {
  const Index width = columns.size();
  thread_local Buffer<double> factors;
  const double* from = S;
  if (coupling != nullptr) {
    factors.resize(static_cast<std::size_t>(count * width));
    coupling->to_factors(count, S, factors.data());
    from = factors.data();
  }
  for (Index i = 0; i < count; ++i) {
    for (Index k = 0; k < width; ++k)
      out[i * width + k] = from[i * width + columns.factor[static_cast<std::size_t>(k)]];
  }
}

void from_kernel_columns(const Coupling* coupling, const KernelColumns& columns, Index count, const double* A,
                         double* out) {
  const Index width = columns.size();
  thread_local Buffer<double> factors;
  double* to = out;
  if (coupling != nullptr) {
    factors.resize(static_cast<std::size_t>(count * width));
    to = factors.data();
  }
  for (Index i = 0; i < count; ++i) {
    for (Index k = 0; k < width; ++k) to[i * width + columns.factor[static_cast<std::size_t>(k)]] = A[i * width + k];
  }
  if (coupling != nullptr) coupling->from_factors(count, factors.data(), out);
}

template <class T>
KernelProduct<T>::KernelProduct(const Problem& problem, std::vector<Operator<T>*> operators)
    : problem_(problem),
      operators_(std::move(operators)),
      columns_(problem.prior.kernel_of, static_cast<Index>(operators_.size())) {
  const std::size_t size = static_cast<std::size_t>(problem.likelihood->rows() * columns_.size());
  functions_.resize(size);
  images_.resize(size);
}

template <class T>
void KernelProduct<T>::apply(const T* S, T* out, const Execution& execution) {
  const Index rows = problem_.likelihood->rows();
  const Index classes = problem_.likelihood->outputs();
  const DenseView<const T> from(S, rows, classes);
  const DenseView<T> to(out, rows, classes);
  std::vector<double> sums(static_cast<std::size_t>(classes));
  column_sums(from, sums.data(), execution);
  std::vector<T> shift(sums.size());
  for (std::size_t c = 0; c < sums.size(); ++c) shift[c] = static_cast<T>(problem_.prior.intercept_variance * sums[c]);
  if (problem_.prior.kernel_of.empty()) {
    apply_shared(from, to, shift.data(), execution);
  } else {
    apply_own(from, to, shift.data(), execution);
  }
}

template <class T>
void KernelProduct<T>::apply_shared(DenseView<const T> S, DenseView<T> out, const T* shift,
                                    const Execution& execution) {
  const Coupling* const coupling = problem_.prior.coupling;
  operators_.front()->apply(S, out, coupling == nullptr ? shift : nullptr, execution);
  if (coupling == nullptr) return;
  const Blocks blocks = coupled_blocks(out.rows, out.cols);
  parallel_for(blocks.number(), execution, [&](Index block) {
    const Index first = blocks.first(block);
    coupling->apply(blocks.length(block), out.row(first));
    for (Index i = first; i < first + blocks.length(block); ++i) add_shift(shift, out.cols, out.row(i));
  });
}

template <class T>
void KernelProduct<T>::apply_own(DenseView<const T> S, DenseView<T> out, const T* shift, const Execution& execution) {
  const Index width = columns_.size();
  const Blocks blocks = coupled_blocks(out.rows, std::max(width, out.cols));
  const DenseView<T> functions(functions_.data(), S.rows, width);
  const DenseView<T> images(images_.data(), S.rows, width);
  const auto for_blocks = [&](const auto& body) {
    parallel_for(blocks.number(), execution, [&](Index block) {
      thread_local Buffer<double> classes, columns;
      const Index count = blocks.length(block);
      classes.resize(static_cast<std::size_t>(count * S.cols));
      columns.resize(static_cast<std::size_t>(count * width));
      body(blocks.first(block), count, classes.data(), columns.data());
    });
  };
  for_blocks([&](Index first, Index count, double* classes, double* columns) {
    convert_block(S.row(first), classes, count * S.cols);
    to_kernel_columns(problem_.prior.coupling, columns_, count, classes, columns);
    convert_block(columns, functions.row(first), count * width);
  });
  for (std::size_t l = 0; l < operators_.size(); ++l) {
    const Index begin = columns_.begin[l];
    const Index columns = columns_.begin[l + 1] - begin;
    if (columns == 0) continue;
    operators_[l]->apply(DenseView<const T>(functions.data + begin, S.rows, columns, width),
                         DenseView<T>(images.data + begin, S.rows, columns, width), nullptr, execution);
  }
  for_blocks([&](Index first, Index count, double* classes, double* columns) {
    convert_block(images.row(first), columns, count * width);
    from_kernel_columns(problem_.prior.coupling, columns_, count, columns, classes);
    convert_block(classes, out.row(first), count * S.cols);
    for (Index i = first; i < first + count; ++i) add_shift(shift, out.cols, out.row(i));
  });
}

template <class T>
void KernelProduct<T>::diag(Matrix<double>& out) const {
  const Coupling* const coupling = problem_.prior.coupling;
  const Index rows = problem_.likelihood->rows();
  const Index classes = problem_.likelihood->outputs();
  Matrix<double> kernels(static_cast<Index>(operators_.size()), rows);
  for (std::size_t l = 0; l < operators_.size(); ++l) operators_[l]->diag(kernels.row(static_cast<Index>(l)));
  // G_l's diagonal is that of R_l R_l^T: columns of R of other kernels are left out.
  Matrix<double> weights(static_cast<Index>(operators_.size()), classes);
  if (problem_.prior.kernel_of.empty()) {
    std::fill(weights.data(), weights.data() + classes, 1.0);
    if (coupling != nullptr) coupling->diag(weights.data());
  } else {
    std::vector<double> unit(static_cast<std::size_t>(columns_.size())), image(static_cast<std::size_t>(classes));
    for (Index f = 0; f < columns_.size(); ++f) {
      std::fill(unit.begin(), unit.end(), 0.0);
      unit[static_cast<std::size_t>(f)] = 1.0;
      image = unit;
      image.resize(static_cast<std::size_t>(std::max(classes, columns_.size())));
      if (coupling != nullptr) coupling->from_factors(1, unit.data(), image.data());
      double* const row = weights.row(problem_.prior.kernel_of[static_cast<std::size_t>(f)]);
      for (Index c = 0; c < classes; ++c)
        row[c] += image[static_cast<std::size_t>(c)] * image[static_cast<std::size_t>(c)];
    }
  }
  out = Matrix<double>(rows, classes);
  for (Index i = 0; i < rows; ++i) {
    for (Index c = 0; c < classes; ++c) {
      double sum = problem_.prior.intercept_variance;
      for (Index l = 0; l < kernels.rows(); ++l) sum += kernels.row(l)[i] * weights.row(l)[c];
      out.row(i)[c] = sum;
    }
  }
}

template class KernelProduct<float>;
template class KernelProduct<double>;

}  // namespace taxolearn
