// What every likelihood keeps, checked by finite differences and by its own other functions.
#pragma once

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "problems.hpp"
#include "taxolearn/likelihood/likelihood.hpp"

namespace taxolearn::tests {

class LikelihoodContract {
 public:
  explicit LikelihoodContract(const Likelihood& likelihood)
      : likelihood_(likelihood), n_(likelihood.rows()), C_(likelihood.outputs()) {}

  void check() const {
    const MatrixXd u = 2.0 * Random(101).matrix(n_, C_);
    check_residual(u);
    check_line(u);
    check_hessian(u);
    for (const double size : {2.0, 200.0}) check_single(size * Random(102).matrix(n_, C_));
    check_extremes();
    check_not_finite();
  }

  /// Rows that repeat, and weights that stand for repetition.
  void check_subset() const {
    const std::vector<Index> rows{n_ - 1, 0, 0, n_ / 2};
    const std::vector<double> factors{1.0, 2.0, 0.0, 0.5};
    const auto subset = likelihood_.subset(rows, factors);
    REQUIRE(subset->rows() == 4);
    REQUIRE(subset->outputs() == C_);
    CHECK(subset->link() == likelihood_.link());
    LikelihoodContract(*subset).check();
    const MatrixXd u = Random(103).matrix(4, C_);
    double sum = 0.0;
    MatrixXd expected(4, C_);
    for (Index k = 0; k < 4; ++k) {
      Matrix<double> alone = as_matrix(u.row(k));
      sum += factors[static_cast<std::size_t>(k)] *
             likelihood_.residual(rows[static_cast<std::size_t>(k)], 1, alone.data());
      expected.row(k) = factors[static_cast<std::size_t>(k)] * dense(alone.view());
    }
    const auto [loss, residual] = evaluate(*subset, u);
    CHECK(loss == doctest::Approx(sum).epsilon(1e-12));
    CHECK((residual - expected).norm() < 1e-12 * (1.0 + expected.norm()));

    const MatrixXd row = u.topRows(1);
    const auto [once, once_residual] = evaluate(*likelihood_.subset({n_ / 2}, {2.0}), row);
    const auto [twice, twice_residual] =
        evaluate(*likelihood_.subset({n_ / 2, n_ / 2}, {1.0, 1.0}), row.replicate(2, 1));
    CHECK(once == doctest::Approx(twice).epsilon(1e-13));
    CHECK((once_residual.row(0) - twice_residual.colwise().sum()).norm() < 1e-13);
    const auto again = subset->subset({3, 1}, {1.0, 1.0});
    CHECK(evaluate(*again, u.topRows(2)).first ==
          doctest::Approx(evaluate(*likelihood_.subset({n_ / 2, 0}, {0.5, 2.0}), u.topRows(2)).first));
    CHECK(contains(rejection([&] { likelihood_.subset({n_}, {1.0}); }), "rows contains"));
    CHECK(contains(rejection([&] { likelihood_.subset({0}, {}); }), "1 rows and 0 factors"));
  }

 private:
  static constexpr double h = 1e-5;

  static std::pair<double, MatrixXd> evaluate(const Likelihood& likelihood, const MatrixXd& u) {
    Matrix<double> out = as_matrix(u);
    const double loss = likelihood.residual(0, u.rows(), out.data());
    return {loss, dense(out.view())};
  }
  std::pair<double, MatrixXd> evaluate(const MatrixXd& u) const { return evaluate(likelihood_, u); }

  LinePoint line(const MatrixXd& u, const MatrixXd& du) const {
    Matrix<double> at = as_matrix(u);
    const Matrix<double> along = as_matrix(du);
    return likelihood_.line(0, n_, at.data(), along.data());
  }

  /// Rows 0 .. n - 1 in blocks of uneven sizes: body(first, count).
  template <class Body>
  void in_blocks(const Body& body) const {
    for (Index first = 0, count = 1; first < n_; first += count, ++count) body(first, std::min(count, n_ - first));
  }

  void check_residual(const MatrixXd& u) const {
    const auto [loss, residual] = evaluate(u);
    const double allowed = 1e-9 * (1.0 + std::abs(loss));
    for (Index i = 0; i < n_; ++i) {
      for (Index c = 0; c < C_; c += 1 + C_ / 20) {
        MatrixXd up = u, down = u;
        up(i, c) += h;
        down(i, c) -= h;
        const double difference = (evaluate(up).first - evaluate(down).first) / (2.0 * h);
        CHECK(std::abs(difference - residual(i, c)) < 10.0 * allowed);
      }
    }
    double sum = 0.0;
    Matrix<double> parts = as_matrix(u);
    in_blocks([&](Index first, Index count) { sum += likelihood_.residual(first, count, parts.row(first)); });
    CHECK(sum == doctest::Approx(loss).epsilon(1e-12));
    CHECK((dense(parts.view()) - residual).norm() <= 1e-14 * residual.norm());
  }

  void check_line(const MatrixXd& u) const {
    const MatrixXd du = Random(104).matrix(n_, C_);
    const auto at = [&](double t) { return line(u + t * du, du); };
    const LinePoint point = at(0.0);
    const auto [loss, residual] = evaluate(u);
    const double scale = 1.0 + std::abs(loss);
    CHECK(point.value == doctest::Approx(loss).epsilon(1e-12));
    CHECK(std::abs(point.slope - (residual.array() * du.array()).sum()) < 1e-12 * scale);
    CHECK(std::abs(point.slope - (at(h).value - at(-h).value) / (2.0 * h)) < 1e-8 * scale);
    CHECK(std::abs(point.curvature - (at(h).slope - at(-h).slope) / (2.0 * h)) < 1e-8 * scale);
    LinePoint sum;
    Matrix<double> parts = as_matrix(u);
    const Matrix<double> along = as_matrix(du);
    in_blocks(
        [&](Index first, Index count) { sum += likelihood_.line(first, count, parts.row(first), along.row(first)); });
    CHECK(sum.value == doctest::Approx(point.value).epsilon(1e-12));
    CHECK(std::abs(sum.slope - point.slope) < 1e-12 * scale);
    CHECK(sum.curvature == doctest::Approx(point.curvature).epsilon(1e-12));
  }

  /// V_i or V_i^T, column by column.
  MatrixXd root(Index i, const double* curvature, bool transposed) const {
    MatrixXd out(C_, C_);
    for (Index c = 0; c < C_; ++c) {
      VectorXd x = VectorXd::Unit(C_, c);
      if (transposed) likelihood_.root_transposed(i, 1, curvature, x.data());
      if (!transposed) likelihood_.root(i, 1, curvature, x.data());
      out.col(c) = x;
    }
    return out;
  }

  void check_hessian(const MatrixXd& u) const {
    Matrix<double> curvature = as_matrix(u), parts = as_matrix(u);
    likelihood_.curvature(0, n_, curvature.data());
    in_blocks([&](Index first, Index count) { likelihood_.curvature(first, count, parts.row(first)); });
    CHECK((dense(parts.view()) - dense(curvature.view())).norm() <= 1e-14 * dense(parts.view()).norm());

    Matrix<double> diagonal(n_, C_), D(n_, C_), sum(C_, C_);
    likelihood_.root_diagonal(0, n_, curvature.data(), diagonal.data());
    in_blocks(
        [&](Index first, Index count) { likelihood_.add_hessian(first, count, curvature.row(first), sum.data()); });
    const HessianStructure structure = likelihood_.hessian_structure();
    const auto write_D = [&] { likelihood_.hessian_diagonal(0, n_, curvature.data(), D.data()); };
    if (structure == HessianStructure::general) {
      CHECK(contains(rejection(write_D), "not made of a diagonal"));
    } else {
      write_D();
    }

    Matrix<double> x = as_matrix(Random(105).matrix(n_, C_));
    const MatrixXd before = dense(x.view());
    MatrixXd product(n_, C_), total = MatrixXd::Zero(C_, C_);
    for (Index i = 0; i < n_; ++i) {
      const MatrixXd V = root(i, curvature.row(i), false);
      const MatrixXd H = times(V, V.transpose());
      const double scale = 1.0 + H.norm();
      CHECK((root(i, curvature.row(i), true) - V.transpose()).norm() < 1e-14 * scale);
      CHECK((V.colwise().squaredNorm() - dense(diagonal.view()).row(i)).norm() < 1e-14 * scale);
      for (Index c = 0; c < C_; c += 1 + C_ / 20) {
        MatrixXd up = u, down = u;
        up(i, c) += h;
        down(i, c) -= h;
        const MatrixXd difference = (evaluate(up).second - evaluate(down).second) / (2.0 * h);
        CHECK((difference.row(i).transpose() - H.col(c)).norm() < 1e-8 * scale);
      }
      const VectorXd d = dense(D.view()).row(i);
      MatrixXd declared = d.asDiagonal();
      if (structure == HessianStructure::diagonal_minus_rank_one && d.sum() > 0.0)
        declared -= d * d.transpose() / d.sum();
      if (structure != HessianStructure::general) CHECK((declared - H).norm() < 1e-14 * scale);
      product.row(i) = (H * before.row(i).transpose()).transpose();
      total += H;
    }
    const double scale = 1.0 + total.norm();
    CHECK((dense(sum.view()) - total).norm() < 1e-13 * scale);

    const Matrix<double> a = x, b = as_matrix(Random(106).matrix(n_, C_));
    Matrix<double> plain = x;
    likelihood_.hessian(0, n_, curvature.data(), x.data());
    likelihood_.Likelihood::hessian(0, n_, curvature.data(), plain.data());
    CHECK((dense(x.view()) - product).norm() < 1e-13 * scale);
    CHECK((dense(plain.view()) - product).norm() < 1e-13 * scale);
    const double slope = (dense(b.view()).array() * product.array()).sum();
    const double value = 0.5 * (before.array() * product.array()).sum();
    for (const LinePoint& point : {likelihood_.hessian_line(0, n_, curvature.data(), a.data(), b.data()),
                                   likelihood_.Likelihood::hessian_line(0, n_, curvature.data(), a.data(), b.data())}) {
      CHECK(std::abs(point.value - value) < 1e-12 * scale);
      CHECK(std::abs(point.slope - slope) < 1e-12 * scale);
    }
    CHECK(likelihood_.hessian_line(0, n_, curvature.data(), b.data(), a.data()).curvature ==
          doctest::Approx(2.0 * value).epsilon(1e-12));
  }

  void check_single(const MatrixXd& u) const {
    const Matrix<double> at = as_matrix(u);
    const MatrixXd du = Random(107).matrix(n_, C_);
    const Matrix<double> along = as_matrix(du);
    const std::vector<float> single(along.data(), along.data() + along.size());
    const auto [loss, residual] = evaluate(u);
    const double largest = 1.0 + residual.cwiseAbs().maxCoeff();
    std::vector<float> out(static_cast<std::size_t>(n_ * C_) + 1, 7.0F), plain = out;
    double sum = 0.0;
    in_blocks([&](Index first, Index count) {
      sum += likelihood_.single_residual(first, count, at.row(first), out.data() + first * C_);
    });
    CHECK(out.back() == 7.0F);
    const double plain_sum = likelihood_.Likelihood::single_residual(0, n_, at.data(), plain.data());
    CHECK(std::abs(sum - loss) < 1e-6 * (1.0 + std::abs(loss)));
    CHECK(std::abs(plain_sum - loss) < 1e-6 * (1.0 + std::abs(loss)));
    double error = 0.0;
    for (Index i = 0; i < n_; ++i) {
      for (Index c = 0; c < C_; ++c) {
        const auto place = static_cast<std::size_t>(i * C_ + c);
        error = std::max({error, std::abs(static_cast<double>(out[place]) - residual(i, c)),
                          std::abs(static_cast<double>(plain[place]) - residual(i, c))});
      }
    }
    CHECK(error < 1e-6 * largest);
    for (const double step : {0.0, 0.7}) {
      const LinePoint exact = line(u + step * du, du);
      const double slope_scale =
          1.0 + (evaluate(u + step * du).second.array() * du.array()).abs().sum() + std::abs(exact.slope);
      LinePoint parts;
      in_blocks([&](Index first, Index count) {
        parts += likelihood_.single_line(first, count, at.row(first), step, single.data() + first * C_);
      });
      for (const LinePoint& point :
           {parts, likelihood_.Likelihood::single_line(0, n_, at.data(), step, single.data())}) {
        CHECK(std::abs(point.value - exact.value) < 1e-6 * (1.0 + std::abs(exact.value)));
        CHECK(std::abs(point.slope - exact.slope) < 2e-6 * slope_scale);
        CHECK(std::abs(point.curvature - exact.curvature) < 5e-6 * (1.0 + exact.curvature));
      }
    }
  }

  void check_extremes() const {
    Random random(108);
    const std::vector<double> values{1e3, -1e3, 0.0, 40.0, -40.0, 999.0};
    MatrixXd u(n_, C_);
    for (Index i = 0; i < n_; ++i) {
      for (Index c = 0; c < C_; ++c) u(i, c) = i == 0 ? 1e3 : i == 1 ? -1e3 : values[random.below(6)];
    }
    const auto [loss, residual] = evaluate(u);
    CHECK(std::isfinite(loss));
    CHECK(residual.allFinite());
    const LinePoint point = line(u, u);
    CHECK(std::isfinite(point.value));
    CHECK(std::isfinite(point.slope));
    CHECK(std::isfinite(point.curvature));
    CHECK(point.curvature >= 0.0);
    Matrix<double> curvature = as_matrix(u), x = as_matrix(u), y = x, diagonal(n_, C_);
    likelihood_.curvature(0, n_, curvature.data());
    likelihood_.root(0, n_, curvature.data(), x.data());
    likelihood_.root_transposed(0, n_, curvature.data(), y.data());
    likelihood_.root_diagonal(0, n_, curvature.data(), diagonal.data());
    CHECK(dense(x.view()).allFinite());
    CHECK(dense(y.view()).allFinite());
    CHECK(dense(diagonal.view()).allFinite());
    CHECK(dense(diagonal.view()).minCoeff() > -1e-14);
  }

  /// A predictor that is not a number must show in every sum, or a solver would go on.
  void check_not_finite() const {
    const std::vector<float> du(static_cast<std::size_t>(n_ * C_), 1.0F);
    const MatrixXd ones = MatrixXd::Ones(n_, C_);
    std::vector<float> out(du.size());
    for (const Index place : {Index{0}, C_ / 2, C_ - 1}) {
      MatrixXd u = 0.5 * ones;
      u(n_ - 1, place) = std::numeric_limits<double>::quiet_NaN();
      const Matrix<double> at = as_matrix(u);
      CHECK(!std::isfinite(evaluate(u).first));
      CHECK(!std::isfinite(line(u, ones).slope));
      CHECK(!std::isfinite(likelihood_.single_residual(0, n_, at.data(), out.data())));
      CHECK(!std::isfinite(likelihood_.single_line(0, n_, at.data(), 0.5, du.data()).slope));
    }
  }

  const Likelihood& likelihood_;
  Index n_, C_;
};

}  // namespace taxolearn::tests
