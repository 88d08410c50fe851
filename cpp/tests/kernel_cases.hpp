// Kernels with their formulas, term by term, for the tests of kernels.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <numeric>

#include "problems.hpp"
#include "taxolearn/kernels/functions.hpp"

namespace taxolearn::tests {

using Theta = std::vector<double>;  // logarithms of the parameters
using KernelPointer = std::shared_ptr<const Kernel>;

/// A kernel and the same, from two rows, term by term.
struct Case {
  std::string name;
  Theta theta;
  std::function<KernelPointer(const Theta&)> make;
  std::function<double(const Theta&, const VectorXd&, const VectorXd&)> oracle;

  KernelPointer kernel() const { return make(theta); }
  double operator()(const VectorXd& x, const VectorXd& y) const { return oracle(theta, x, y); }
};

constexpr Index features = 6;

inline double value_of(StationaryForm form, double r, double alpha) {
  switch (form) {
    case StationaryForm::rbf:
      return std::exp(-0.5 * r * r);
    case StationaryForm::matern12:
      return std::exp(-r);
    case StationaryForm::matern32:
      return (1.0 + std::sqrt(3.0) * r) * std::exp(-std::sqrt(3.0) * r);
    case StationaryForm::matern52:
      return (1.0 + std::sqrt(5.0) * r + 5.0 * r * r / 3.0) * std::exp(-std::sqrt(5.0) * r);
    case StationaryForm::rational_quadratic:
      return std::pow(1.0 + r * r / (2.0 * alpha), -alpha);
  }
  return 0.0;
}

inline const std::map<std::string, StationaryForm> forms{{"rbf", StationaryForm::rbf},
                                                         {"matern12", StationaryForm::matern12},
                                                         {"matern32", StationaryForm::matern32},
                                                         {"matern52", StationaryForm::matern52},
                                                         {"rational_quadratic", StationaryForm::rational_quadratic}};

inline Case stationary(const std::string& name, Index lengths) {
  const StationaryForm form = forms.at(name);
  const bool has_alpha = form == StationaryForm::rational_quadratic;
  const auto count = static_cast<std::size_t>(lengths);
  Theta theta;
  for (std::size_t d = 0; d < count; ++d) theta.push_back(0.25 * static_cast<double>(d) - 0.3);
  if (has_alpha) theta.push_back(0.4);
  theta.push_back(-0.2);
  const auto alpha = [=](const Theta& t) { return has_alpha ? std::exp(t[count]) : 1.0; };
  return {name + (lengths > 1 ? " per feature" : ""), theta,
          [=](const Theta& t) {
            std::vector<double> scales;
            for (std::size_t d = 0; d < count; ++d) scales.push_back(std::exp(t[d]));
            return make_stationary_kernel(form, scales, std::exp(t.back()), alpha(t));
          },
          [=](const Theta& t, const VectorXd& x, const VectorXd& y) {
            double r2 = 0.0;
            for (Index d = 0; d < x.size(); ++d) {
              const double length = std::exp(t[count == 1 ? 0 : static_cast<std::size_t>(d)]);
              r2 += std::pow((x[d] - y[d]) / length, 2);
            }
            return std::exp(t.back()) * value_of(form, std::sqrt(r2), alpha(t));
          }};
}

inline Case linear() {
  return {"linear",
          {0.3},
          [](const Theta& t) { return make_linear_kernel(std::exp(t[0])); },
          [](const Theta& t, const VectorXd& x, const VectorXd& y) { return std::exp(t[0]) * x.dot(y); }};
}

inline Case cosine() {
  return {"cosine",
          {0.3},
          [](const Theta& t) { return make_cosine_kernel(std::exp(t[0])); },
          [](const Theta& t, const VectorXd& x, const VectorXd& y) {
            const double norms = x.norm() * y.norm();
            return norms > 0.0 ? std::exp(t[0]) * x.dot(y) / norms : 0.0;
          }};
}

inline Case polynomial(int degree) {
  return {
      "polynomial " + std::to_string(degree),
      {-0.5, 0.2, 0.3},
      [=](const Theta& t) { return make_polynomial_kernel(degree, std::exp(t[0]), std::exp(t[1]), std::exp(t[2])); },
      [=](const Theta& t, const VectorXd& x, const VectorXd& y) {
        return std::exp(t[2]) * std::pow(std::exp(t[0]) * x.dot(y) + std::exp(t[1]), degree);
      }};
}

inline Case composite(const std::string& name, const std::vector<Case>& parts) {
  const bool sum = name == "sum";
  const auto cut = [=](const Theta& t) {
    std::vector<Theta> thetas;
    auto at = t.begin();
    for (const Case& part : parts) {
      thetas.emplace_back(at, at + static_cast<std::ptrdiff_t>(part.theta.size()));
      at += static_cast<std::ptrdiff_t>(part.theta.size());
    }
    return thetas;
  };
  Case out{name, {}, nullptr, nullptr};
  for (const Case& part : parts) {
    out.theta.insert(out.theta.end(), part.theta.begin(), part.theta.end());
    out.name += " (" + part.name + ")";
  }
  out.make = [=](const Theta& t) {
    std::vector<KernelPointer> kernels;
    for (std::size_t k = 0; k < parts.size(); ++k) kernels.push_back(parts[k].make(cut(t)[k]));
    return sum ? make_sum_kernel(kernels) : make_product_kernel(kernels);
  };
  out.oracle = [=](const Theta& t, const VectorXd& x, const VectorXd& y) {
    double result = sum ? 0.0 : 1.0;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const double value = parts[k].oracle(cut(t)[k], x, y);
      result = sum ? result + value : result * value;
    }
    return result;
  };
  return out;
}

inline std::vector<Case> cases() {
  std::vector<Case> all{linear(), cosine(), polynomial(1), polynomial(2), polynomial(5)};
  for (const auto& form : forms) {
    all.push_back(stationary(form.first, 1));
    all.push_back(stationary(form.first, features));
  }
  const Case products = composite("product", {stationary("rbf", features), linear(), stationary("matern52", 1)});
  all.push_back(products);
  all.push_back(composite("sum", {products, cosine(), composite("product", {polynomial(2), products})}));
  return all;
}

inline MatrixXd expected(const Case& kernel, const MatrixXd& X, const MatrixXd& Y) {
  return MatrixXd::NullaryExpr(X.rows(), Y.rows(),
                               [&](Index i, Index j) { return kernel(X.row(i).transpose(), Y.row(j).transpose()); });
}

template <class T>
MatrixXd matrix(const Kernel& kernel, const InputRows& left, const InputRows& right, const Execution& execution = one) {
  Padded<T> out(left.count(), right.count());
  kernel_matrix<T>(kernel, left, right, out.view(), execution);
  CHECK(out.padding_untouched());
  return dense(out.view());
}

/// d/dtheta_k of sum_ij Q_ij k(x_i, y_j) by central differences.
inline VectorXd differences(const Case& kernel, const MatrixXd& X, const MatrixXd& Y, const MatrixXd& Q) {
  VectorXd out(static_cast<Index>(kernel.theta.size()));
  constexpr double h = 1e-5;
  for (Index k = 0; k < out.size(); ++k) {
    Case up = kernel, down = kernel;
    up.theta[static_cast<std::size_t>(k)] += h;
    down.theta[static_cast<std::size_t>(k)] -= h;
    out[k] = Q.cwiseProduct(expected(up, X, Y) - expected(down, X, Y)).sum() / (2.0 * h);
  }
  return out;
}

inline MatrixXd pick_rows(const MatrixXd& X, const std::vector<Index>& rows) { return X(rows, Eigen::all); }

template <class T>
constexpr double accuracy = sizeof(T) == sizeof(float) ? 3e-6 : 3e-14;

template <class T>
double largest_error(const MatrixXd& a, const MatrixXd& b) {
  return (a - b).cwiseAbs().maxCoeff() / std::max(1.0, b.cwiseAbs().maxCoeff());
}

}  // namespace taxolearn::tests
