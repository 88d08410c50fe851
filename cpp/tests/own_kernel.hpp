// A covariance function as somebody else would write it, on the contract of kernels/kernel.hpp alone: obvious, slow,
// dense double inputs only.
#pragma once

#include <memory>

#include "problems.hpp"
#include "taxolearn/kernels/kernel.hpp"

namespace taxolearn::tests {

/// k(x, x') = variance exp(-|x - x'|^2 / (2 length^2)), theta = (log length, log variance).
struct OwnKernel final : Kernel {
  double length;
  double variance;

  OwnKernel(double length_, double variance_) : length(length_), variance(variance_) {}

  static double squared_distance(const double* x, const double* y, Index features) {
    double sum = 0.0;
    for (Index d = 0; d < features; ++d) sum += (x[d] - y[d]) * (x[d] - y[d]);
    return sum;
  }

  double value(double squared) const { return variance * std::exp(-0.5 * squared / (length * length)); }

  template <class T>
  struct Entries final : KernelEntries<T> {
    const OwnKernel& kernel;
    InputRows left, right;
    DenseView<const double> a, b;

    Entries(const OwnKernel& kernel_, const InputRows& left_, const InputRows& right_)
        : kernel(kernel_), left(left_), right(right_) {
      require(left.X.index() == 5 && right.X.index() == 5, "the inputs are not dense rows in double precision");
      a = std::get<5>(left.X);
      b = std::get<5>(right.X);
    }

    double squared(Index i, Index j) const {
      return squared_distance(a.row(left.source(i)), b.row(right.source(j)), a.cols);
    }
    void block(Index i, Index j, DenseView<T> out) const override {
      for (Index r = 0; r < out.rows; ++r) {
        for (Index c = 0; c < out.cols; ++c) out.row(r)[c] = static_cast<T>(kernel.value(squared(i + r, j + c)));
      }
    }
    void gradient(Index i, Index j, DenseView<const double> Q, double* gradient) const override {
      for (Index r = 0; r < Q.rows; ++r) {
        for (Index c = 0; c < Q.cols; ++c) {
          const double d2 = squared(i + r, j + c);
          const double part = Q.row(r)[c] * kernel.value(d2);
          gradient[0] += part * d2 / (kernel.length * kernel.length);
          gradient[1] += part;
        }
      }
    }
  };

  Index parameters() const override { return 2; }
  std::unique_ptr<KernelEntries<float>> single_entries(const InputRows& left, const InputRows& right,
                                                       const Execution&) const override {
    return std::make_unique<Entries<float>>(*this, left, right);
  }
  std::unique_ptr<KernelEntries<double>> double_entries(const InputRows& left, const InputRows& right,
                                                        const Execution&) const override {
    return std::make_unique<Entries<double>>(*this, left, right);
  }
  void diag(const InputRows& rows, double* out) const override { std::fill_n(out, rows.count(), variance); }
  void diag_gradient(const InputRows& rows, const double* q, double* gradient) const override {
    for (Index i = 0; i < rows.count(); ++i) gradient[1] += variance * q[i];
  }

  /// The matrix between rows of X and of Y.
  MatrixXd matrix(const MatrixXd& X, const MatrixXd& Y) const {
    MatrixXd out(X.rows(), Y.rows());
    for (Index i = 0; i < out.rows(); ++i) {
      for (Index j = 0; j < out.cols(); ++j) out(i, j) = value((X.row(i) - Y.row(j)).squaredNorm());
    }
    return out;
  }
};

/// Dense inputs in double precision, as Eigen holds them and as the library takes them.
struct DenseInputs {
  MatrixXd X;
  Padded<double> rows;

  DenseInputs(Index n, Index features, std::uint64_t seed) : X(Random(seed).matrix(n, features)), rows(X) {}
  InputView view() const { return rows.view(); }
};

/// 0 .. n - 1 in some order.
inline std::vector<Index> shuffled(Index n, std::uint64_t seed) {
  Random random(seed);
  std::vector<Index> out(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i) out[static_cast<std::size_t>(i)] = i;
  for (Index i = n - 1; i > 0; --i) {
    std::swap(out[static_cast<std::size_t>(i)], out[static_cast<std::size_t>(random.below(i + 1))]);
  }
  return out;
}

/// Says stop as soon as it is asked.
struct Stopping final : Monitor {
  bool interrupted() override { return true; }
};

}  // namespace taxolearn::tests
