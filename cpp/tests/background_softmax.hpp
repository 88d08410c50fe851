// A likelihood that only the tests have: softmax against a background whose predictor is zero,
//
//   f_i(u_i) = s_i (log(1 + sum_c exp(u_ic)) - u_iy),   y = -1 for the background, where u_iy = 0.
//
// Its Hessian s_i (diag(p) - p p^T) is not diagonal minus rank one as solvers mean it, because the p_c do not sum to
// one, and it has no link.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "problems.hpp"
#include "taxolearn/likelihood/likelihood.hpp"

namespace taxolearn::tests {

class BackgroundSoftmax final : public Likelihood {
 public:
  BackgroundSoftmax(std::vector<std::int32_t> labels, Index outputs, std::vector<double> weights)
      : labels_(std::move(labels)), weights_(std::move(weights)), outputs_(outputs) {}

  Index rows() const override { return static_cast<Index>(labels_.size()); }
  Index outputs() const override { return outputs_; }
  Link link() const override { return Link::none; }
  HessianStructure hessian_structure() const override { return HessianStructure::general; }

  double residual(Index first, Index count, double* u) const override {
    double loss = 0.0;
    for (Index k = 0; k < count; ++k) {
      auto row = row_of(u, k);
      const std::int32_t label = labels_[at(first + k)];
      const double s = weights_[at(first + k)];
      const double own = label < 0 ? 0.0 : row[label];
      loss += s * (to_probabilities(row) - own);
      if (label >= 0) row[label] -= 1.0;
      row *= s;
    }
    return loss;
  }

  LinePoint line(Index first, Index count, double* u, const double* du) const override {
    std::vector<double> p(u, u + count * outputs_);
    curvature(first, count, p.data());
    LinePoint point = hessian_line(first, count, p.data(), du, du);
    point.value = residual(first, count, u);
    point.slope = 0.0;
    for (Index k = 0; k < count * outputs_; ++k) point.slope += u[k] * du[k];
    return point;
  }

  void curvature(Index, Index count, double* u) const override {
    for (Index k = 0; k < count; ++k) to_probabilities(row_of(u, k));
  }

  // V = sqrt(s) (I - a p 1^T) diag(p)^1/2 with 2 a - a^2 sum(p) = 1.
  void root(Index first, Index count, const double* p, double* x) const override {
    for (Index k = 0; k < count; ++k) {
      const Row pi = row_of(p, k);
      auto row = row_of(x, k);
      row = row * pi.sqrt();
      row = std::sqrt(weights_[at(first + k)]) * (row - factor(pi) * row.sum() * pi).eval();
    }
  }
  void root_transposed(Index first, Index count, const double* p, double* x) const override {
    for (Index k = 0; k < count; ++k) {
      const Row pi = row_of(p, k);
      auto row = row_of(x, k);
      row = std::sqrt(weights_[at(first + k)]) * pi.sqrt() * (row - factor(pi) * (pi * row).sum()).eval();
    }
  }
  void root_diagonal(Index first, Index count, const double* p, double* out) const override {
    for (Index k = 0; k < count; ++k) {
      const Row pi = row_of(p, k);
      const double a = factor(pi);
      row_of(out, k) = weights_[at(first + k)] * pi * (1.0 - 2.0 * a * pi + a * a * pi.square().sum());
    }
  }
  void add_hessian(Index first, Index count, const double* p, double* out) const override {
    for (Index k = 0; k < count; ++k) {
      const Eigen::VectorXd pi = row_of(p, k).matrix();
      Eigen::Map<MatrixXd>(out, outputs_, outputs_) +=
          weights_[at(first + k)] * (MatrixXd(pi.asDiagonal()) - pi * pi.transpose());
    }
  }

  std::unique_ptr<Likelihood> subset(const std::vector<Index>& rows,
                                     const std::vector<double>& factors) const override {
    require(rows.size() == factors.size(), "there are ", rows.size(), " rows and ", factors.size(), " factors");
    std::vector<std::int32_t> labels;
    std::vector<double> weights;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      require(rows[k] >= 0 && rows[k] < this->rows(), "rows contains ", rows[k]);
      labels.push_back(labels_[at(rows[k])]);
      weights.push_back(weights_[at(rows[k])] * factors[k]);
    }
    return std::make_unique<BackgroundSoftmax>(std::move(labels), outputs_, std::move(weights));
  }

 private:
  using Row = Eigen::ArrayXd;

  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  Eigen::Map<Eigen::ArrayXd> row_of(double* x, Index k) const { return {x + k * outputs_, outputs_}; }
  Eigen::Map<const Eigen::ArrayXd> row_of(const double* x, Index k) const { return {x + k * outputs_, outputs_}; }

  /// Replaces predictors by probabilities; returns the logarithm of the sum.
  static double to_probabilities(Eigen::Map<Eigen::ArrayXd> row) {
    const double largest = row.isNaN().any() ? std::nan("") : std::max(row.maxCoeff(), 0.0);
    row = (row - largest).exp().eval();
    const double sum = row.sum() + std::exp(-largest);
    row /= sum;
    return largest + std::log(sum);
  }

  static double factor(const Row& p) { return 1.0 / (1.0 + std::sqrt(std::max(1.0 - p.sum(), 0.0))); }

  std::vector<std::int32_t> labels_;
  std::vector<double> weights_;
  Index outputs_;
};

}  // namespace taxolearn::tests
