#include "taxolearn/couplings/factors.hpp"

#include <algorithm>
#include <cmath>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/product.hpp"

namespace taxolearn {
namespace {

/// Columns of an array (count x width), from one of them on.
template <class T>
DenseView<T> columns(T* array, Index count, Index begin, Index number, Index width) {
  return DenseView<T>(array + begin, count, number, width);
}

/// to = from, row by row.
void copy_rows(const DenseView<const double>& from, const DenseView<double>& to) {
  for (Index i = 0; i < from.rows; ++i) std::copy(from.row(i), from.row(i) + from.cols, to.row(i));
}

}  // namespace

FactorCoupling::FactorCoupling(std::shared_ptr<const Coupling> base, Matrix<double> loadings)
    : base_(std::move(base)), loadings_(std::move(loadings)), single_(loadings_.rows(), loadings_.cols()) {
  require(loadings_.rows() > 0 && loadings_.cols() > 0, "loadings has the shape (", loadings_.rows(), ", ",
          loadings_.cols(), "), expected one row per class and at least one column");
  require(base_ == nullptr || base_->classes() == loadings_.rows(), "loadings has ", loadings_.rows(),
          " rows, expected ", base_ == nullptr ? 0 : base_->classes(), ", one per class");
  require(dynamic_cast<const FactorCoupling*>(base_.get()) == nullptr,
          "the base of a coupling with loadings has loadings itself; put all columns into one array");
  for (Index c = 0; c < loadings_.rows(); ++c) {
    for (Index k = 0; k < loadings_.cols(); ++k) {
      const double value = loadings_.row(c)[k];
      require(std::isfinite(value), "loadings[", c, ", ", k, "] is ", value, ", expected a finite number");
      single_.row(c)[k] = static_cast<float>(value);
    }
  }
}

template <class T>
void FactorCoupling::apply_rows(Index count, const Matrix<T>& loadings, T* S) const {
  const Index p = loadings.cols();
  thread_local Buffer<T> scratch;
  scratch.resize(static_cast<std::size_t>(count * p));
  const DenseView<T> rows(S, count, classes());
  const DenseView<T> shared(scratch.data(), count, p);
  set_product(Product::AB, rows, loadings.view(), shared);
  if (base_ == nullptr) {
    set_product(Product::ABt, shared, loadings.view(), rows);
  } else {
    base_->apply(count, S);
    add_product(Product::ABt, shared, loadings.view(), rows);
  }
}

void FactorCoupling::apply(Index count, float* S) const { apply_rows(count, single_, S); }
void FactorCoupling::apply(Index count, double* S) const { apply_rows(count, loadings_, S); }

void FactorCoupling::to_factors(Index count, const double* S, double* out) const {
  const Index own = base_factors();
  if (own > 0) {
    thread_local Buffer<double> scratch;
    scratch.resize(static_cast<std::size_t>(count * own));
    base_->to_factors(count, S, scratch.data());
    copy_rows(DenseView<const double>(scratch.data(), count, own), columns(out, count, 0, own, factors()));
  }
  set_product(Product::AB, DenseView<const double>(S, count, classes()), loadings_.view(),
              columns(out, count, own, loadings_.cols(), factors()));
}

void FactorCoupling::from_factors(Index count, const double* A, double* out) const {
  const Index own = base_factors();
  const DenseView<double> rows(out, count, classes());
  const DenseView<const double> shared = columns(A, count, own, loadings_.cols(), factors());
  if (own == 0) {
    set_product(Product::ABt, shared, loadings_.view(), rows);
    return;
  }
  thread_local Buffer<double> scratch;
  scratch.resize(static_cast<std::size_t>(count * own));
  copy_rows(columns(A, count, 0, own, factors()), DenseView<double>(scratch.data(), count, own));
  base_->from_factors(count, scratch.data(), out);
  add_product(Product::ABt, shared, loadings_.view(), rows);
}

void FactorCoupling::diag(double* out) const {
  std::fill(out, out + classes(), 0.0);
  if (base_ != nullptr) base_->diag(out);
  for (Index c = 0; c < classes(); ++c)
    for (Index k = 0; k < loadings_.cols(); ++k) out[c] += loadings_.row(c)[k] * loadings_.row(c)[k];
}

Index FactorCoupling::parameters() const {
  return (base_ == nullptr ? 0 : base_->parameters()) + loadings_.rows() * loadings_.cols();
}

void FactorCoupling::bilinear_grad(Index count, const double* E, const double* H, double* gradient) const {
  if (base_ != nullptr) {
    base_->bilinear_grad(count, E, H, gradient);
    gradient += base_->parameters();
  }
  const Index p = loadings_.cols();
  thread_local Buffer<double> scratch;
  scratch.resize(static_cast<std::size_t>(count * p));
  const DenseView<double> shared(scratch.data(), count, p);
  const DenseView<const double> left(E, count, classes());
  const DenseView<const double> right(H, count, classes());
  const DenseView<double> out(gradient, classes(), p);
  set_product(Product::AB, right, loadings_.view(), shared);
  add_product(Product::AtB, left, shared, out);
  set_product(Product::AB, left, loadings_.view(), shared);
  add_product(Product::AtB, right, shared, out);
}

}  // namespace taxolearn
