#include <cmath>

#include "base.hpp"
#include "chunk.hpp"
#include "rows.hpp"
#include "taxolearn/base/vector.hpp"
#include "taxolearn/kernels/functions.hpp"

namespace taxolearn {
namespace {

template <class T>
Chunk<T> integer_power(const Chunk<T>& base, int exponent) {
  Chunk<T> out = Chunk<T>::Ones();
  Chunk<T> square = base;
  for (int rest = exponent; rest > 0; rest /= 2) {
    if (rest % 2 == 1) out *= square;
    if (rest > 1) square *= square;
  }
  return out;
}

/// v (s t + o)^degree of an inner product t. The linear kernel and the cosine are those of degree 1 with s = 1 and
/// o = 0, between rows as they are and between rows of norm 1.
struct PolynomialParameters {
  int degree = 1;
  double scale = 1.0;
  double offset = 0.0;
  double variance = 1.0;
  bool variance_only = true;  ///< the variance is the only parameter
  bool normalize = false;

  bool plain() const { return degree == 1 && scale == 1.0 && offset == 0.0; }

  template <class T>
  void map(T* row, Index count) const {
    const T v = static_cast<T>(variance), s = static_cast<T>(scale), o = static_cast<T>(offset);
    if (plain()) {
      map_chunks(row, count, [&](Chunk<T>& t, Index) { t *= v; });
    } else {
      map_chunks(row, count, [&](Chunk<T>& t, Index) {
        const Chunk<T> base = s * t + o;
        t = v * integer_power<T>(base, degree);
      });
    }
  }

  /// Adds sum_b q[b] times the derivatives at inner products t[b].
  void add_gradient(const double* q, const double* t, Index count, double* gradient) const {
    double by_scale = 0.0, by_offset = 0.0, by_variance = 0.0;
    for (Index b = 0; b < count; ++b) {
      const double base = scale * t[b] + offset;
      const double inner = degree == 1 ? 1.0 : std::pow(base, degree - 1);
      by_scale += q[b] * inner * t[b];
      by_offset += q[b] * inner;
      by_variance += q[b] * inner * base;
    }
    if (!variance_only) {
      gradient[0] += variance * degree * scale * by_scale;
      gradient[1] += variance * degree * offset * by_offset;
    }
    gradient[variance_only ? 0 : 2] += variance * by_variance;
  }
};

template <class T>
class InnerProductEntries final : public SymmetricEntries<T> {
 public:
  InnerProductEntries(const PolynomialParameters& parameters, const InputRows& left, const InputRows& right,
                      const Execution& execution)
      : SymmetricEntries<T>(&left == &right),
        parameters_(parameters),
        rows_(left, right, {{}, false, parameters.normalize}, execution) {}

  void gradient(Index i, Index j, DenseView<const double> Q, double* gradient) const override {
    Scratch<T> products(Q.rows, Q.cols);
    Scratch<double> row(1, Q.cols);
    rows_.inner_products(i, j, products.view());
    for (Index a = 0; a < Q.rows; ++a) {
      convert_block(products.row(a), row.row(0), Q.cols);
      parameters_.add_gradient(Q.row(a), row.row(0), Q.cols, gradient);
    }
  }

 protected:
  void compute(Index i, Index j, DenseView<T> out) const override {
    rows_.inner_products(i, j, out);
    for (Index a = 0; a < out.rows; ++a) parameters_.map(out.row(a), out.cols);
  }

 private:
  PolynomialParameters parameters_;
  KernelRows<T> rows_;
};

class InnerProductKernel final : public KernelBase<InnerProductKernel> {
 public:
  explicit InnerProductKernel(const PolynomialParameters& parameters) : parameters_(parameters) {}

  Index parameters() const override { return parameters_.variance_only ? 1 : 3; }
  std::optional<double> linear_variance() const override {
    const bool is_linear = parameters_.variance_only && parameters_.plain() && !parameters_.normalize;
    return is_linear ? std::optional<double>(parameters_.variance) : std::nullopt;
  }

  void diag(const InputRows& rows, double* out) const override {
    const std::vector<double> products = self_products(rows);
    std::copy(products.begin(), products.end(), out);
    parameters_.map(out, rows.count());
  }

  void diag_gradient(const InputRows& rows, const double* q, double* gradient) const override {
    parameters_.add_gradient(q, self_products(rows).data(), rows.count(), gradient);
  }

  template <class T>
  std::unique_ptr<KernelEntries<T>> entries(const InputRows& left, const InputRows& right,
                                            const Execution& execution) const {
    return std::make_unique<InnerProductEntries<T>>(parameters_, left, right, execution);
  }

 private:
  /// x_i . x_i; of rows that are normalised 1, or 0 for zero rows.
  std::vector<double> self_products(const InputRows& rows) const {
    require_rows("selected", rows);
    std::vector<double> out(static_cast<std::size_t>(rows.count()));
    if (parameters_.normalize) {
      for (Index i = 0; i < rows.count(); ++i) out[static_cast<std::size_t>(i)] = has_direction(rows, i) ? 1.0 : 0.0;
      return out;
    }
    std::vector<double> norms(static_cast<std::size_t>(input_rows(rows.X)));
    squared_norms(rows.X, norms.data());
    for (Index i = 0; i < rows.count(); ++i) {
      out[static_cast<std::size_t>(i)] = norms[static_cast<std::size_t>(rows.source(i))];
    }
    return out;
  }

  PolynomialParameters parameters_;
};

}  // namespace

std::shared_ptr<const Kernel> make_linear_kernel(double variance) {
  require_positive("variance", variance);
  PolynomialParameters parameters;
  parameters.variance = variance;
  return std::make_shared<InnerProductKernel>(parameters);
}

std::shared_ptr<const Kernel> make_cosine_kernel(double variance) {
  require_positive("variance", variance);
  PolynomialParameters parameters;
  parameters.variance = variance;
  parameters.normalize = true;
  return std::make_shared<InnerProductKernel>(parameters);
}

std::shared_ptr<const Kernel> make_polynomial_kernel(int degree, double scale, double offset, double variance) {
  require(degree >= 1, "degree must be a positive integer, got ", degree);
  require_positive("scale", scale);
  require(std::isfinite(offset) && offset >= 0.0, "offset must be zero or positive and finite, got ", offset);
  require_positive("variance", variance);
  return std::make_shared<InnerProductKernel>(PolynomialParameters{degree, scale, offset, variance, false, false});
}

}  // namespace taxolearn
