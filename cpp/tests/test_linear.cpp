#include <doctest/doctest.h>

#include "operators.hpp"
#include "taxolearn/operators/dense_linear.hpp"
#include "taxolearn/operators/linear.hpp"
#include "taxolearn/operators/sparse_linear.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

constexpr double variance = 0.625;

std::vector<LinearAlgorithm> algorithms(const InputView& X) {
  return {is_sparse(X) ? LinearAlgorithm::sparse : LinearAlgorithm::dense, LinearAlgorithm::stored};
}

/// Calls body(operator) for every type of input and every algorithm that goes with it.
template <class T, class Body>
void for_operators(const Inputs& inputs, const Body& body) {
  for (const InputView& X : inputs.views) {
    for (const LinearAlgorithm algorithm : algorithms(X)) {
      const auto op = make_linear<T>(X, variance, algorithm, one);
      CAPTURE(X.index());
      CAPTURE(op->algorithm());
      body(*op);
    }
  }
}

MatrixXd pick_rows(const MatrixXd& X, const std::vector<Index>& rows) { return X(rows, Eigen::all); }

}  // namespace

TEST_CASE_TEMPLATE("apply is variance X X^T S + 1 shift^T", T, float, double) {
  const Inputs inputs(33, 24, 4, 1);
  const MatrixXd M = variance * times(inputs.X, inputs.X.transpose());
  for_operators<T>(inputs, [&](Operator<T>& op) {
    CHECK(op.rows() == 33);
    Random random(2);
    for (const Index m : {1, 5, 8, 37, 70}) {
      const MatrixXd S = random.matrix(33, m);
      const VectorXd shift = random.matrix(m, 1);
      const std::vector<T> shift_values(shift.data(), shift.data() + m);
      CHECK(relative_error(apply<T>(op, S, nullptr, one), times(M, S)) < rounding<T>);
      const MatrixXd shifted = times(M, S).rowwise() + shift.transpose();
      CHECK(relative_error(apply(op, S, shift_values.data(), one), shifted) < rounding<T>);
    }
  });
}

TEST_CASE_TEMPLATE("apply_cross is variance Xnew X^T S", T, float, double) {
  const Inputs inputs(33, 24, 4, 3);
  const Inputs fresh(300, 24, 2, 4);
  const MatrixXd S = Random(5).matrix(33, 6);
  const MatrixXd expected = variance * times(fresh.X, times(inputs.X.transpose(), S));
  for_operators<T>(inputs, [&](Operator<T>& op) {
    for (const InputView& Xnew : fresh.views) {
      const Padded<T> padded(S);
      Padded<T> out(300, 6), again(300, 6);
      op.apply_cross(Xnew, padded.view(), out.view(), one);
      CHECK(relative_error(dense(out.view()), expected) < rounding<T>);
      CHECK(out.padding_untouched());
      op.apply_cross(Xnew, padded.view(), again.view(), two);
      CHECK(identical(dense(out.view()), dense(again.view())));
    }
  });
}

TEST_CASE_TEMPLATE("diag is the diagonal", T, float, double) {
  const Inputs inputs(33, 24, 4, 6);
  const VectorXd expected = variance * inputs.X.rowwise().squaredNorm();
  for_operators<T>(inputs, [&](Operator<T>& op) {
    VectorXd diagonal(33);
    op.diag(diagonal.data());
    CHECK(relative_error(diagonal, expected) < 1e-14);
  });
}

TEST_CASE_TEMPLATE("bilinear_grad is the derivative in log variance", T, float, double) {
  const Inputs inputs(33, 24, 4, 7);
  Random random(8);
  const MatrixXd E = random.matrix(33, 9);
  const MatrixXd F = random.matrix(33, 9);
  const auto trace = [&](double log_variance) {
    return std::exp(log_variance) * bilinear(E, times(inputs.X, inputs.X.transpose()), F);
  };
  const double h = 1e-4;
  const double expected = (trace(std::log(variance) + h) - trace(std::log(variance) - h)) / (2.0 * h);
  for_operators<T>(inputs, [&](Operator<T>& op) {
    REQUIRE(op.parameters() == 1);
    const Padded<T> left(E), right(F);
    double gradient = 0.0, again = 0.0;
    op.bilinear_grad(left.view(), right.view(), &gradient, one);
    CHECK(gradient == doctest::Approx(expected).epsilon(sizeof(T) == sizeof(float) ? 1e-5 : 1e-8));
    op.bilinear_grad(left.view(), right.view(), &again, two);
    CHECK(gradient == again);
  });
}

TEST_CASE_TEMPLATE("project and expand are Z^T S and Z W + 1 shift^T", T, float, double) {
  const Inputs inputs(33, 24, 4, 11);
  for (const InputView& X : inputs.views) {
    const auto whole = make_linear_features<T>(X, variance, one);
    const auto part = whole->subset({9, 4, 31, 0}, one);
    FeatureOperator<T>* op = whole.get();
    CHECK(op->features() == 24);
    MatrixXd Z = std::sqrt(variance) * inputs.X;
    for (const bool selected : {false, true}) {
      if (selected) {
        op = dynamic_cast<FeatureOperator<T>*>(part.get());
        REQUIRE(op != nullptr);
        Z = pick_rows(Z, {9, 4, 31, 0});
      }
      Random random(12);
      for (const Index m : {1, 9, 70}) {
        const MatrixXd S = random.matrix(Z.rows(), m);
        const MatrixXd W = random.matrix(24, m);
        const VectorXd shift = random.matrix(m, 1);
        const std::vector<T> shift_values(shift.data(), shift.data() + m);
        const Padded<T> points(S), weights(W);
        Padded<T> projected(24, m), expanded(Z.rows(), m);
        op->project(points.view(), projected.view(), one);
        CHECK(relative_error(dense(projected.view()), times(Z.transpose(), S)) < rounding<T>);
        op->expand(weights.view(), expanded.view(), nullptr, one);
        CHECK(relative_error(dense(expanded.view()), times(Z, W)) < rounding<T>);
        op->expand(weights.view(), expanded.view(), shift_values.data(), one);
        CHECK(relative_error(dense(expanded.view()), times(Z, W).rowwise() + shift.transpose()) < rounding<T>);
        CHECK(projected.padding_untouched());
        CHECK(expanded.padding_untouched());
        CHECK(relative_error(apply<T>(*op, S, nullptr, one), times(Z, times(Z.transpose(), S))) < rounding<T>);
      }
    }
  }
}

TEST_CASE_TEMPLATE("products give the same bits on two threads", T, float, double) {
  const Inputs large(2100, 60, 8, 13), small(600, 60, 8, 13);
  for (const Index m : {3, 70}) {
    const auto check = [&](const Inputs& inputs, const InputView& X, LinearAlgorithm algorithm) {
      const MatrixXd S = Random(14).matrix(inputs.X.rows(), m);
      const MatrixXd serial = apply<T>(*make_linear<T>(X, variance, algorithm, one), S, nullptr, one);
      CHECK(relative_error(serial, variance * times(inputs.X, times(inputs.X.transpose(), S))) < rounding<T>);
      CHECK(identical(serial, apply<T>(*make_linear<T>(X, variance, algorithm, two), S, nullptr, two)));
    };
    check(large, large.sparse(), LinearAlgorithm::sparse);
    check(large, large.dense(), LinearAlgorithm::dense);
    check(small, small.sparse(), LinearAlgorithm::stored);
    check(small, small.dense(), LinearAlgorithm::stored);
    const MatrixXd S = Random(15).matrix(2100, m), W = Random(16).matrix(60, m);
    for (const InputView& X : {large.sparse(), large.dense()}) {
      const auto run = [&](const Execution& execution) {
        const auto op = make_linear_features<T>(X, variance, execution);
        Padded<T> projected(60, m), expanded(2100, m);
        op->project(Padded<T>(S).view(), projected.view(), execution);
        op->expand(Padded<T>(W).view(), expanded.view(), nullptr, execution);
        return std::pair(dense(projected.view()), dense(expanded.view()));
      };
      const auto [projected, expanded] = run(one);
      CHECK(relative_error(projected, std::sqrt(variance) * times(large.X.transpose(), S)) < rounding<T>);
      CHECK(relative_error(expanded, std::sqrt(variance) * times(large.X, W)) < rounding<T>);
      const auto [projected2, expanded2] = run(two);
      CHECK(identical(projected, projected2));
      CHECK(identical(expanded, expanded2));
    }
  }
}

TEST_CASE("the algorithm follows from rows, entries and features") {
  const auto name = [](const InputView& X) {
    return make_linear<double>(X, 1.0, LinearAlgorithm::automatic, one)->algorithm();
  };
  Sparse<double, std::int32_t> X;  // two entries per row: break-even at 20 rows
  X.cols = 2;
  for (X.rows = 1; X.rows <= 20; ++X.rows) {
    X.columns.insert(X.columns.end(), {0, 1});
    X.values.insert(X.values.end(), {1.0, 2.0});
    X.offsets.push_back(static_cast<std::int32_t>(2 * X.rows));
    CHECK(name(X.view()) == (X.rows < 20 ? "stored" : "sparse"));
  }
  const std::vector<double> values(32, 1.0);  // four features: break-even at 8 rows
  for (Index rows = 1; rows <= 8; ++rows) {
    CHECK(name(DenseView<const double>(values.data(), rows, 4)) == (rows < 8 ? "stored" : "dense"));
  }
}

TEST_CASE_TEMPLATE("inputs without rows or features", T, float, double) {
  for (const Index rows : {0, 3}) {
    for (const Index cols : {0, 4}) {
      if (rows > 0 && cols > 0) continue;
      const Inputs inputs(rows, cols, cols > 0 ? 2 : 0, 16);
      for_operators<T>(inputs, [&](Operator<T>& op) {
        CHECK(identical(apply<T>(op, MatrixXd::Ones(rows, 2), nullptr, one), MatrixXd::Zero(rows, 2)));
      });
      for (const InputView& X : inputs.views) {
        Padded<T> W(cols, 2);
        make_linear_features<T>(X, variance, one)->project(Padded<T>(MatrixXd::Ones(rows, 2)).view(), W.view(), one);
        CHECK(identical(dense(W.view()), MatrixXd::Zero(cols, 2)));
      }
    }
  }
}

TEST_CASE_TEMPLATE("errors name bad arguments", T, float, double) {
  const Inputs inputs(33, 24, 4, 17);
  const double infinity = std::numeric_limits<double>::infinity();
  for (const InputView& X : inputs.views) {
    for (const double bad : {0.0, -1.0, infinity, std::nan("")}) {
      const auto message = rejection([&] { make_linear<T>(X, bad, LinearAlgorithm::automatic, one); });
      CHECK(contains(message, "variance must be positive and finite, got "));
    }
    const LinearAlgorithm other = is_sparse(X) ? LinearAlgorithm::dense : LinearAlgorithm::sparse;
    const std::string expected =
        is_sparse(X) ? "algorithm \"dense\" needs dense inputs" : "algorithm \"sparse\" needs sparse inputs";
    CHECK(rejection([&] { make_linear<T>(X, 1.0, other, one); }) == expected);

    const auto features = make_linear_features<T>(X, variance, one);
    Padded<T> W(23, 2), S(33, 2);
    CHECK(rejection([&] { features->project(S.view(), W.view(), one); }) == "W has shape (23, 2), expected (24, 2)");
    CHECK(rejection([&] { features->expand(W.view(), S.view(), nullptr, one); }) ==
          "W has shape (23, 2), expected (24, 2)");
  }
  const Inputs narrow(5, 23, 2, 18);
  for_operators<T>(inputs, [&](Operator<T>& op) {
    Padded<T> S(33, 2), few(32, 2), slim(33, 1), out(5, 2);
    double gradient = 0.0;
    CHECK(rejection([&] { op.apply(few.view(), S.view(), nullptr, one); }) == "S has shape (32, 2), expected (33, 2)");
    CHECK(rejection([&] { op.apply(S.view(), slim.view(), nullptr, one); }) ==
          "out has shape (33, 1), expected (33, 2)");
    CHECK(rejection([&] { op.bilinear_grad(S.view(), slim.view(), &gradient, one); }) ==
          "F has shape (33, 1), expected (33, 2)");
    CHECK(rejection([&] { op.apply_cross(narrow.sparse(), S.view(), out.view(), one); }) ==
          "Xnew has 23 features, expected 24");
    CHECK(rejection([&] { op.apply_cross(inputs.sparse(), S.view(), few.view(), one); }) ==
          "out has shape (32, 2), expected (33, 2)");
  });
}
