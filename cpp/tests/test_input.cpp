#include <doctest/doctest.h>

#include <cmath>

#include "problems.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

TEST_CASE("size of the inputs") {
  const Inputs inputs(23, 12, 3, 1);
  for (const InputView& X : inputs.views) {
    CHECK(input_rows(X) == 23);
    CHECK(input_features(X) == 12);
  }
  const Index stored = static_cast<Index>(random_sparse<double, std::int32_t>(23, 12, 3, 1).values.size());
  CHECK(input_entries(inputs.sparse()) == stored);
  CHECK(stored > (inputs.X.array() != 0.0).count());  // duplicates count
  CHECK(input_entries(inputs.dense()) == 23 * 12);
}

TEST_CASE("expand_rows is X W on a block of rows") {
  for (const Index classes : {5, 127, 128, 150}) {
    CAPTURE(classes);
    const Inputs inputs(23, 12, 6, 2);
    const MatrixXd W = Random(3).matrix(12, classes);
    const Padded<double> padded(W);
    const MatrixXd rounded = W.cast<float>().cast<double>();
    const Padded<float> single(rounded);
    for (const InputView& X : inputs.views) {
      for (const Index first : {0, 4, 22}) {
        for (const Index count : {Index{0}, Index{1}, 23 - first}) {
          Padded<double> out(MatrixXd::Constant(count, classes, 7.0));
          expand_rows(X, first, padded.view(), out.view());
          CHECK(relative_error(dense(out.view()), inputs.X.middleRows(first, count) * W) < 1e-14);
          CHECK(out.padding_untouched());
          Padded<double> from_single(MatrixXd::Constant(count, classes, 7.0));
          expand_rows(X, first, single.view(), from_single.view());
          CHECK(relative_error(dense(from_single.view()), inputs.X.middleRows(first, count) * rounded) < 1e-14);
          CHECK(from_single.padding_untouched());
        }
      }
    }
  }
}

TEST_CASE("project_columns adds X^T S to the columns asked for and to no other") {
  const Inputs inputs(23, 12, 3, 4);
  Random random(5);
  const MatrixXd start = random.matrix(12, 6);
  for (const InputView& X : inputs.views) {
    for (const Index first : {0, 5}) {
      const MatrixXd S = random.matrix(23 - first, 6);
      const Padded<double> padded(S);
      for (const Index column : {0, 2}) {
        for (const Index count : {0, 1, 4}) {
          MatrixXd expected = start;
          expected.middleCols(column, count) +=
              inputs.X.bottomRows(23 - first).transpose() * S.middleCols(column, count);
          Padded<double> W(start);
          project_columns(X, first, padded.view(), column, count, W.view());
          CHECK(relative_error(dense(W.view()), expected) < 1e-14);
          MatrixXd others = dense(W.view());
          others.middleCols(column, count) = start.middleCols(column, count);
          CHECK(identical(others, start));
          CHECK(W.padding_untouched());
        }
      }
    }
  }
}

TEST_CASE("project_sparse is X^T S, with the same bits on any number of threads") {
  for (const Index columns : {1, 7, 300}) {  // the last has two panels
    const Inputs inputs(90, 41, 5, 4);
    const MatrixXd S = Random(5).matrix(90, columns);
    const Padded<double> padded(S);
    for (const InputView& X : inputs.views) {
      if (!is_sparse(X)) continue;
      MatrixXd first;
      for (const int threads : {1, 2, 3, 64}) {
        Padded<double> W(MatrixXd::Constant(41, columns, std::nan("")));
        project_sparse(X, padded.view(), W.view(), Execution{threads, nullptr});
        const MatrixXd answer = dense(W.view());
        CHECK(relative_error(answer, inputs.X.transpose() * S) < 1e-14);
        CHECK(W.padding_untouched());
        if (threads == 1) first = answer;
        CHECK(identical(answer, first));
        MatrixXd parts = MatrixXd::Constant(41, columns, std::nan(""));
        const auto take = [&](Index from, DenseView<double> some) {
          parts.middleRows(from, some.rows) = dense(DenseView<const double>(some));
        };
        project_sparse(X, padded.view(), take, Execution{threads, nullptr});
        CHECK(identical(parts, first));
      }
    }
  }
}

TEST_CASE("project_dense is X^T S, with the same bits on any number of threads") {
  for (const Index rows : {3, 1100}) {  // the last has three tiles, and two parts of the features
    const Inputs inputs(rows, 70, 5, 4);
    const MatrixXd S = Random(5).matrix(rows, 7);
    const Padded<double> padded(S);
    for (const InputView& X : inputs.views) {
      if (is_sparse(X) || input_blocks(X) != nullptr) continue;
      MatrixXd first;
      for (const int threads : {1, 2, 64}) {
        Padded<double> W(MatrixXd::Constant(70, 7, std::nan("")));
        project_dense(X, padded.view(), W.view(), Execution{threads, nullptr});
        const MatrixXd answer = dense(W.view());
        CHECK(relative_error(answer, inputs.X.transpose() * S) < 1e-14);
        CHECK(W.padding_untouched());
        if (threads == 1) first = answer;
        CHECK(identical(answer, first));
      }
    }
  }
}

TEST_CASE("squared norms add duplicates before the square") {
  const Inputs inputs(40, 12, 3, 6);
  const VectorXd expected = inputs.X.rowwise().squaredNorm();
  CHECK(expected.minCoeff() == 0.0);  // an empty row is among them
  for (const InputView& X : inputs.views) {
    VectorXd norms = VectorXd::Constant(40, -1.0);
    squared_norms(X, norms.data());
    CHECK(relative_error(norms, expected) < 1e-14);
  }
}
