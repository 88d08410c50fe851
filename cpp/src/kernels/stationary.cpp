#include <limits>
#include <type_traits>

#include "base.hpp"
#include "chunk.hpp"
#include "rows.hpp"
#include "taxolearn/base/vector.hpp"
#include "taxolearn/kernels/functions.hpp"

namespace taxolearn {
namespace {

template <StationaryForm form>
using FormConstant = std::integral_constant<StationaryForm, form>;

/// Calls body with the form as a constant.
template <class Body>
void with_form(StationaryForm form, const Body& body) {
  switch (form) {
    case StationaryForm::rbf:
      return body(FormConstant<StationaryForm::rbf>{});
    case StationaryForm::matern12:
      return body(FormConstant<StationaryForm::matern12>{});
    case StationaryForm::matern32:
      return body(FormConstant<StationaryForm::matern32>{});
    case StationaryForm::matern52:
      return body(FormConstant<StationaryForm::matern52>{});
    case StationaryForm::rational_quadratic:
      return body(FormConstant<StationaryForm::rational_quadratic>{});
  }
}

/// exp(-x) for x >= 0; zero once it would soon be too small for a normal number, which no product could bear fast.
template <class T>
Chunk<T> exp_minus(const Chunk<T>& x) {
  constexpr T end = sizeof(T) == sizeof(float) ? T(65) : T(600);
  Chunk<T> out = (-x.min(end)).exp();
#pragma omp simd
  for (Index k = 0; k < out.size(); ++k) out[k] = x[k] < end ? out[k] : T(0);
  return out;
}

/// log(1 + x) for x >= 0, accurate near 0 (Kahan's way).
template <class T>
Chunk<T> log_one_plus(const Chunk<T>& x) {
  const Chunk<T> sum = T(1) + x;
  Chunk<T> out = sum.log();
#pragma omp simd
  for (Index k = 0; k < out.size(); ++k) out[k] = sum[k] > T(1) ? out[k] * (x[k] / (sum[k] - T(1))) : x[k];
  return out;
}

/// f and its derivatives as functions of the squared distance r^2.
template <StationaryForm form, class T>
struct Profile {
  T alpha;
  T half_inverse_alpha;

  // Past these limits rational_quadratic is exp(-r^2 / 2) or 1 in any precision.
  explicit Profile(double alpha_)
      : alpha(static_cast<T>(std::clamp(alpha_, 1e-12, 1e12))),
        half_inverse_alpha(static_cast<T>(0.5 / std::clamp(alpha_, 1e-12, 1e12))) {}

  Chunk<T> ratio(const Chunk<T>& squared) const {
    constexpr T largest = static_cast<T>(sizeof(T) == sizeof(float) ? 1e37 : 1e307);
    return (squared * half_inverse_alpha).min(largest);
  }

  Chunk<T> value(const Chunk<T>& squared) const {
    if constexpr (form == StationaryForm::rbf) return exp_minus<T>(T(0.5) * squared);
    if constexpr (form == StationaryForm::matern12) return exp_minus<T>(squared.sqrt());
    if constexpr (form == StationaryForm::matern32) {
      const Chunk<T> a = (T(3) * squared).sqrt();
      return (T(1) + a) * exp_minus<T>(a);
    }
    if constexpr (form == StationaryForm::matern52) {
      const Chunk<T> a = (T(5) * squared).sqrt();
      return (T(1) + a + T(5.0 / 3.0) * squared) * exp_minus<T>(a);
    }
    if constexpr (form == StationaryForm::rational_quadratic) {
      return exp_minus<T>(alpha * log_one_plus<T>(ratio(squared)));
    }
  }

  struct Derivatives {
    Chunk<T> value;
    Chunk<T> slope;     ///< -2 df / d(r^2): df / d(log l_d) is this times (x_d - x'_d)^2 / l_d^2
    Chunk<T> by_alpha;  ///< df / d(log alpha), for rational_quadratic only
  };

  Derivatives derivatives(const Chunk<T>& squared) const {
    Derivatives out;
    if constexpr (form == StationaryForm::rbf) out.slope = out.value = value(squared);
    if constexpr (form == StationaryForm::matern12) {
      const Chunk<T> r = squared.sqrt();
      out.value = exp_minus<T>(r);
      out.slope = out.value / r.max(std::numeric_limits<T>::min());
    }
    if constexpr (form == StationaryForm::matern32) {
      const Chunk<T> a = (T(3) * squared).sqrt();
      const Chunk<T> e = exp_minus<T>(a);
      out.value = (T(1) + a) * e;
      out.slope = T(3) * e;
    }
    if constexpr (form == StationaryForm::matern52) {
      const Chunk<T> a = (T(5) * squared).sqrt();
      const Chunk<T> e = exp_minus<T>(a);
      out.value = (T(1) + a + T(5.0 / 3.0) * squared) * e;
      out.slope = T(5.0 / 3.0) * (T(1) + a) * e;
    }
    if constexpr (form == StationaryForm::rational_quadratic) {
      const Chunk<T> u = ratio(squared);
      const Chunk<T> log = log_one_plus<T>(u);
      out.value = exp_minus<T>(alpha * log);
      out.slope = out.value / (T(1) + u);
      out.by_alpha = out.value * alpha * (u / (T(1) + u) - log);
    }
    return out;
  }
};

struct StationaryParameters {
  StationaryForm form;
  std::vector<double> length_scales;
  double variance;
  double alpha;

  bool has_alpha() const { return form == StationaryForm::rational_quadratic; }
  Index count() const { return static_cast<Index>(length_scales.size()) + (has_alpha() ? 1 : 0) + 1; }
};

template <class T>
class StationaryEntries final : public SymmetricEntries<T> {
 public:
  StationaryEntries(const StationaryParameters& parameters, const InputRows& left, const InputRows& right,
                    const Execution& execution)
      : SymmetricEntries<T>(&left == &right),
        parameters_(parameters),
        rows_(left, right, {parameters.length_scales, true, false}, execution) {}

  void gradient(Index i, Index j, DenseView<const double> Q, double* gradient) const override {
    with_form(parameters_.form, [&](auto form) { this->template add_gradient<form()>(i, j, Q, gradient); });
  }

 protected:
  void compute(Index i, Index j, DenseView<T> out) const override {
    rows_.inner_products(i, j, out);
    with_form(parameters_.form, [&](auto form) {
      const Profile<form(), T> profile(parameters_.alpha);
      const T variance = static_cast<T>(parameters_.variance);
      for (Index a = 0; a < out.rows; ++a) {
        rows_.to_squared_distances(i + a, j, out.row(a), out.cols);
        map_chunks(out.row(a), out.cols, [&](Chunk<T>& chunk, Index) { chunk = variance * profile.value(chunk); });
      }
    });
  }

 private:
  template <StationaryForm form>
  void add_gradient(Index i, Index j, DenseView<const double> Q, double* gradient) const {
    const Profile<form, double> profile(parameters_.alpha);
    const Index lengths = static_cast<Index>(parameters_.length_scales.size());
    const bool per_feature = lengths > 1;
    const double end = KernelRows<T>::farthest();
    Scratch<T> squared(Q.rows, Q.cols);
    rows_.inner_products(i, j, squared.view());
    Scratch<double> H(per_feature ? Q.rows : 1, Q.cols), row(1, Q.cols);
    Chunk<double> values = Chunk<double>::Zero(), slopes = Chunk<double>::Zero(), alphas = Chunk<double>::Zero();
    for (Index a = 0; a < Q.rows; ++a) {
      const bool any_close = rows_.to_squared_distances(i + a, j, squared.row(a), Q.cols);
      convert_block(squared.row(a), row.row(0), Q.cols);
      double* const h = H.row(per_feature ? a : 0);
      std::copy(Q.row(a), Q.row(a) + Q.cols, h);
      map_chunks(h, Q.cols, [&](Chunk<double>& q, Index k) {
        Chunk<double> r2 = Chunk<double>::Zero();
        std::copy(row.row(0) + k, row.row(0) + std::min<Index>(k + r2.size(), Q.cols), r2.data());
        const auto at = profile.derivatives(r2);
        values += q * at.value;
        if constexpr (form == StationaryForm::rational_quadratic) alphas += q * at.by_alpha;
        q *= parameters_.variance * at.slope;
        // Rows at distance 0 do not differ in any feature; others were too far apart for their distance to be known.
#pragma omp simd
        for (Index c = 0; c < q.size(); ++c) q[c] = r2[c] > 0.0 && r2[c] < end ? q[c] : 0.0;
        if (!per_feature) slopes += q * r2;
      });
      if (per_feature && any_close) add_close(i + a, j, row.row(0), Q.cols, h, gradient);
    }
    if (per_feature) {
      rows_.add_feature_sums(i, j, H.view(), gradient);
    } else {
      gradient[0] += slopes.sum();
    }
    if (parameters_.has_alpha()) gradient[lengths] += parameters_.variance * alphas.sum();
    gradient[parameters_.count() - 1] += parameters_.variance * values.sum();
  }

  /// Pairs of rows whose difference would be lost in a product with H count here, and no more in H.
  void add_close(Index i, Index j, const double* squared, Index count, double* h, double* gradient) const {
    for (Index b = 0; b < count; ++b) {
      if (h[b] == 0.0 || !rows_.close(i, j + b, squared[b])) continue;
      rows_.add_squared_differences(i, j + b, h[b], gradient);
      h[b] = 0.0;
    }
  }

  StationaryParameters parameters_;
  KernelRows<T> rows_;
};

class StationaryKernel final : public KernelBase<StationaryKernel> {
 public:
  explicit StationaryKernel(StationaryParameters parameters) : parameters_(std::move(parameters)) {}

  Index parameters() const override { return parameters_.count(); }

  void diag(const InputRows& rows, double* out) const override {
    check(rows);
    std::fill(out, out + rows.count(), parameters_.variance);
  }

  void diag_gradient(const InputRows& rows, const double* q, double* gradient) const override {
    check(rows);
    double sum = 0.0;
    for (Index i = 0; i < rows.count(); ++i) sum += q[i];
    gradient[parameters() - 1] += parameters_.variance * sum;
  }

  template <class T>
  std::unique_ptr<KernelEntries<T>> entries(const InputRows& left, const InputRows& right,
                                            const Execution& execution) const {
    return std::make_unique<StationaryEntries<T>>(parameters_, left, right, execution);
  }

 private:
  void check(const InputRows& rows) const {
    require_rows("selected", rows);
    require_length_scales(parameters_.length_scales, input_features(rows.X));
  }

  StationaryParameters parameters_;
};

}  // namespace

std::shared_ptr<const Kernel> make_stationary_kernel(StationaryForm form, std::vector<double> length_scales,
                                                     double variance, double alpha) {
  require(!length_scales.empty(), "length_scales is empty, expected one length scale, or one per feature");
  for (const double length_scale : length_scales) require_positive("length_scales", length_scale);
  require_positive("variance", variance);
  if (form == StationaryForm::rational_quadratic) require_positive("alpha", alpha);
  return std::make_shared<StationaryKernel>(StationaryParameters{form, std::move(length_scales), variance, alpha});
}

}  // namespace taxolearn
