#include <doctest/doctest.h>

#include "problems.hpp"
#include "taxolearn/solver/exact.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

using RowMajorXd = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

DenseView<const double> view(const RowMajorXd& matrix) { return {matrix.data(), matrix.rows(), matrix.cols()}; }

/// A positive semidefinite matrix of the given rank.
RowMajorXd random_kernel(Index n, Index rank, double scale, unsigned seed) {
  const MatrixXd B = Random(seed).matrix(n, rank);
  return scale / static_cast<double>(rank) * times(B, B.transpose());
}

RowMajorXd random_probabilities(Index n, Index C, double sharpness, unsigned seed) {
  const MatrixXd u = (sharpness * Random(seed).matrix(n, C)).array().exp();
  return u.array().colwise() / u.rowwise().sum().array();
}

/// A flat model's Newton system, and its dense self. Vectors are n x C row-major.
struct System {
  bool rank_one = true;  ///< else the Hessians are diag(w_i pi_i)
  std::vector<RowMajorXd> matrices;
  std::vector<Index> matrix_of_class;
  RowMajorXd pi;
  VectorXd weights;

  Index n() const { return pi.rows(); }
  Index C() const { return pi.cols(); }

  std::vector<DenseView<const double>> views() const {
    std::vector<DenseView<const double>> out;
    for (const RowMajorXd& matrix : matrices) out.push_back(view(matrix));
    return out;
  }

  MatrixXd K() const {
    MatrixXd out = MatrixXd::Zero(n() * C(), n() * C());
    for (Index c = 0; c < C(); ++c) {
      const RowMajorXd& own = matrices[static_cast<std::size_t>(matrix_of_class[static_cast<std::size_t>(c)])];
      for (Index i = 0; i < n(); ++i) {
        for (Index j = 0; j < n(); ++j) out(i * C() + c, j * C() + c) = own(i, j);
      }
    }
    return out;
  }

  MatrixXd W() const {
    MatrixXd out = MatrixXd::Zero(n() * C(), n() * C());
    for (Index i = 0; i < n(); ++i) {
      const VectorXd p = pi.row(i).transpose();
      out.block(i * C(), i * C(), C(), C()) = weights[i] * MatrixXd(p.asDiagonal());
      if (rank_one) out.block(i * C(), i * C(), C(), C()) -= weights[i] * p * p.transpose();
    }
    return out;
  }

  RowMajorXd D() const { return weights.asDiagonal() * pi; }

  void factor(ExactSystem& system, const Execution& execution) const {
    if (rank_one) {
      system.factor_diagonal_minus_rank_one(D().data(), execution);
    } else {
      system.factor_diagonal(D().data(), execution);
    }
  }

  VectorXd dense_solve(const VectorXd& g) const {
    return -solution(MatrixXd::Identity(n() * C(), n() * C()) + times(W(), K()), g);
  }

  VectorXd exact_solve(const VectorXd& g, const Execution& execution) const {
    ExactSystem system(views(), matrix_of_class, n());
    factor(system, execution);
    const VectorXd Kg = K() * g;
    VectorXd s = VectorXd::Constant(g.size(), 7.0);  // must not matter
    system.solve(g.data(), Kg.data(), s.data(), execution);
    return s;
  }
};

System random_system(Index n, std::vector<Index> matrix_of_class, Index matrices, unsigned seed) {
  System system;
  const Index C = static_cast<Index>(matrix_of_class.size());
  for (Index l = 0; l < matrices; ++l) {
    system.matrices.push_back(
        random_kernel(n, l % 2 == 0 ? n : n / 3, 5.0 + static_cast<double>(l), seed + 10 + static_cast<unsigned>(l)));
  }
  system.matrix_of_class = std::move(matrix_of_class);
  system.pi = random_probabilities(n, C, 2.0, seed + 1);
  system.weights = VectorXd::Ones(n);
  return system;
}

}  // namespace

TEST_CASE("exact solves the dense system, with own and with shared matrices") {
  const std::vector<std::vector<Index>> assignments{{0, 1, 2, 3}, {0, 0, 0}, {1, 0, 1, 2, 0}, {0, 0}, {0}};
  for (const std::vector<Index>& assignment : assignments) {
    System system = random_system(23, assignment, 4, 1);
    const VectorXd g = Random(2).matrix(system.n() * system.C(), 1);
    for (const bool rank_one : {true, false}) {
      system.rank_one = rank_one;
      CHECK(relative_error(system.exact_solve(g, one), system.dense_solve(g)) < 1e-11);
    }
  }
}

TEST_CASE("exact crosses the borders of its tiles") {
  for (const Index n : {64, 129, 257, 300}) {
    System system = random_system(n, {0, 1}, 2, 3);
    const VectorXd g = Random(4).matrix(2 * n, 1);
    for (const bool rank_one : {true, false}) {
      CAPTURE(n);
      CAPTURE(rank_one);
      system.rank_one = rank_one;
      CHECK(relative_error(system.exact_solve(g, one), system.dense_solve(g)) < 1e-10);
      CHECK(identical(system.exact_solve(g, two), system.exact_solve(g, one)));
    }
  }
}

TEST_CASE("exact takes weights, zeros among them, and any spread of them") {
  for (const bool rank_one : {true, false}) {
    System system = random_system(30, {0, 1, 0}, 2, 5);
    system.rank_one = rank_one;
    const VectorXd g = Random(6).matrix(90, 1);
    system.weights = Random(7).matrix(30, 1).array().abs() * 3.0;
    for (const Index i : {0, 3, 4, 17, 29}) system.weights[i] = 0.0;
    const VectorXd s = system.exact_solve(g, one);
    CHECK(relative_error(s, system.dense_solve(g)) < 1e-11);
    for (const Index i : {0, 3, 29}) CHECK(identical(s.segment(3 * i, 3), -g.segment(3 * i, 3)));

    for (Index i = 0; i < 30; ++i) system.weights[i] = std::pow(10.0, static_cast<double>(i % 13) - 10.0);
    CHECK(relative_error(system.exact_solve(g, one), system.dense_solve(g)) < 1e-10);

    system.weights.setZero();
    CHECK(identical(system.exact_solve(g, one), -g));
  }
}

TEST_CASE("exact takes probabilities that are exactly zero and one") {
  System system = random_system(20, {0, 1, 2}, 3, 8);
  const VectorXd g = Random(9).matrix(60, 1);
  system.pi.row(0) << 1.0, 0.0, 0.0;
  system.pi.row(1) << 0.0, 0.0, 1.0;
  system.pi.row(2) << 0.0, 0.5, 0.5;
  system.pi.row(3) << 1.0 - 1e-300, 1e-300, 0.0;
  CHECK(relative_error(system.exact_solve(g, one), system.dense_solve(g)) < 1e-11);
  system.weights[1] = 0.0;
  CHECK(relative_error(system.exact_solve(g, one), system.dense_solve(g)) < 1e-11);

  for (Index i = 0; i < 20; ++i) {
    system.pi.row(i).setZero();
    system.pi(i, i % 3) = 1.0;
  }
  CHECK(relative_error(system.exact_solve(g, one), -g) < 1e-11);  // W = 0
}

TEST_CASE("exact can be factored again, solve in place, and gives the same bits on two threads") {
  System system = random_system(150, {0, 1, 1}, 2, 11);
  System other = random_system(150, {0, 1, 1}, 2, 12);
  const VectorXd g = Random(13).matrix(450, 1);
  ExactSystem exact(system.views(), system.matrix_of_class, 150);
  CHECK(exact.rows() == 150);
  CHECK(exact.classes() == 3);
  for (const bool rank_one : {true, false, true}) {
    system.rank_one = rank_one;
    other.rank_one = !rank_one;
    other.factor(exact, two);
    system.factor(exact, two);
    VectorXd s = system.K() * g;
    exact.solve(g.data(), s.data(), s.data(), two);
    CHECK(identical(s, system.exact_solve(g, one)));
  }
  CHECK(ExactSystem::bytes(1000, 4) == 48e6);
}

TEST_CASE("exact says what is wrong") {
  const RowMajorXd good = random_kernel(6, 6, 1.0, 14);
  const RowMajorXd indefinite = -100.0 * good;
  RowMajorXd broken = good;
  broken(3, 1) = broken(1, 3) = std::numeric_limits<double>::quiet_NaN();
  for (const bool rank_one : {true, false}) {
    RowMajorXd D = random_probabilities(6, 2, 1.0, 15);
    const auto factor = [&](const RowMajorXd& matrix) {
      return rejection([&] {
        ExactSystem system({view(good), view(matrix)}, {0, 1}, 6);
        if (rank_one) system.factor_diagonal_minus_rank_one(D.data(), one);
        if (!rank_one) system.factor_diagonal(D.data(), one);
      });
    };
    CHECK(factor(good).empty());
    CHECK(contains(factor(indefinite), "matrix 1 (of class 1) is not positive semidefinite"));
    CHECK(contains(factor(broken), "not finite"));
    D(2, 1) = -0.5;
    CHECK(contains(factor(good), "D[2, 1] is -0.5, expected a finite number >= 0"));
    D(2, 1) = std::numeric_limits<double>::quiet_NaN();
    CHECK(contains(factor(good), "D[2, 1] is nan"));
  }

  CHECK(contains(rejection([&] { ExactSystem({view(good)}, {0, 1}, 6); }), "matrix_of_class contains 1"));
  CHECK(contains(rejection([&] { ExactSystem({view(good)}, {0}, 5); }), "matrix has shape (6, 6)"));
  CHECK(contains(rejection([&] { ExactSystem({view(good)}, {}, 6); }), "matrix_of_class is empty"));
  VectorXd s = VectorXd::Zero(6);
  CHECK(contains(rejection([&] { ExactSystem({view(good)}, {0}, 6).solve(s.data(), s.data(), s.data(), one); }),
                 "before one of the factor functions"));
}

TEST_CASE("exact stops when the monitor says so") {
  const System system = random_system(40, {0, 0}, 1, 16);
  Monitor monitor;
  monitor.stop();
  ExactSystem exact(system.views(), system.matrix_of_class, 40);
  CHECK_THROWS_AS(system.factor(exact, Execution{2, &monitor}), Interrupted);
}
