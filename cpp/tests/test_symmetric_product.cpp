#include <doctest/doctest.h>

#include <atomic>

#include "operators.hpp"
#include "own_kernel.hpp"
#include "taxolearn/operators/symmetric_product.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

/// Tiles of a dense matrix whose strict upper triangle is not a number: only the lower one may be read.
template <class T>
class LowerTiles {
 public:
  explicit LowerTiles(const MatrixXd& M) : values_(M), blocks_(M.rows(), tile<T>) {
    for (Index i = 0; i < M.rows(); ++i) {
      for (Index j = i + 1; j < M.cols(); ++j) values_.view().row(i)[j] = std::numeric_limits<T>::quiet_NaN();
    }
  }

  TileSource<T> source() const {
    return [this](Index I, Index J) {
      const DenseView<const T> all = values_.view();
      return DenseView<const T>(all.row(blocks_.first(I)) + blocks_.first(J), blocks_.length(I), blocks_.length(J),
                                all.stride);
    };
  }

 private:
  Padded<T> values_;
  Blocks blocks_;
};

template <class T>
MatrixXd product(SymmetricProduct<T>& symmetric_product, const TileSource<T>& tiles, const MatrixXd& S, const T* shift,
                 const Execution& execution) {
  const Padded<T> in(S);
  Padded<T> out(S.rows(), S.cols());
  symmetric_product.run(tiles, in.view(), out.view(), shift, execution);
  CHECK(out.padding_untouched());
  return dense(out.view());
}

/// What a product in precision T may be off, with some hundred terms in a sum.
}  // namespace

TEST_CASE_TEMPLATE("the product is M S + 1 shift^T, the same on any number of threads", T, float, double) {
  SymmetricProduct<T> workspace;  // one for all sizes
  const std::vector<Index> sizes{3 * tile<T> + 37, 1, 2, 3, 17, tile<T> - 1, tile<T>, tile<T> + 1, 2 * tile<T> + 6};
  for (const Index n : sizes) {
    CAPTURE(n);
    const MatrixXd M = symmetric(n, 1);
    const LowerTiles<T> tiles(M);
    Random random(2);
    for (const Index m : {1, 2, 3, 4, 5, 12, 13, 17}) {
      CAPTURE(m);
      const MatrixXd S = random.matrix(n, m);
      const VectorXd shift = random.matrix(m, 1);
      const std::vector<T> values(shift.data(), shift.data() + m);
      const MatrixXd plain = product<T>(workspace, tiles.source(), S, nullptr, one);
      CHECK(relative_error(plain, times(M, S)) < tolerance<T>);
      const MatrixXd shifted = product<T>(workspace, tiles.source(), S, values.data(), one);
      CHECK(relative_error(shifted, times(M, S).rowwise() + shift.transpose()) < tolerance<T>);
      for (const int threads : {2, 3}) {
        CHECK(identical(product<T>(workspace, tiles.source(), S, nullptr, Execution{threads, nullptr}), plain));
      }
    }
  }
}

TEST_CASE_TEMPLATE("columns of wider arrays", T, float, double) {
  const Index n = tile<T> + 30;
  const MatrixXd M = symmetric(n, 3);
  const LowerTiles<T> tiles(M);
  const MatrixXd S = Random(4).matrix(n, 9);
  const Padded<T> in(S);
  Padded<T> out(MatrixXd::Constant(n, 9, 0.5));
  SymmetricProduct<T> workspace;
  workspace.run(tiles.source(), DenseView<const T>(in.view().data + 2, n, 4, in.view().stride),
                DenseView<T>(out.view().data + 3, n, 4, out.view().stride), nullptr, two);
  MatrixXd expected = MatrixXd::Constant(n, 9, 0.5);
  expected.middleCols(3, 4) = times(M, S.middleCols(2, 4));
  CHECK(relative_error(dense(out.view()), expected) < tolerance<T>);
  CHECK(out.padding_untouched());
}

TEST_CASE_TEMPLATE("every tile is asked for once", T, float, double) {
  for (const Index count : {1, 2, 3, 6, 7}) {
    const Index n = count * tile<T> - 5;
    const MatrixXd S = MatrixXd::Ones(n, 1);
    const std::vector<T> zeros(static_cast<std::size_t>(tile<T> * tile<T>), T(0));
    std::vector<std::atomic<int>> asked(static_cast<std::size_t>(count * count));
    const Blocks blocks(n, tile<T>);
    const TileSource<T> tiles = [&](Index I, Index J) {
      ++asked[static_cast<std::size_t>(I * count + J)];
      return DenseView<const T>(zeros.data(), blocks.length(I), blocks.length(J), tile<T>);
    };
    SymmetricProduct<T> workspace;
    CHECK(product<T>(workspace, tiles, S, nullptr, two).norm() == 0.0);
    for (Index I = 0; I < count; ++I) {
      for (Index J = 0; J < count; ++J) CHECK(asked[static_cast<std::size_t>(I * count + J)] == (J <= I ? 1 : 0));
    }
  }
}

TEST_CASE("what is not a number spreads no further than it has to") {
  const Index n = tile<float> + 9;
  MatrixXd M = symmetric(n, 5);
  M.row(n - 1).setConstant(std::numeric_limits<double>::quiet_NaN());
  const LowerTiles<float> tiles(M);  // the last row and column are not a number, the leading part is
  const Index leading = n - 1;
  SymmetricProduct<float> workspace;
  const Blocks blocks(leading, tile<float>);
  const TileSource<float> part = [&, whole = tiles.source()](Index I, Index J) {
    const DenseView<const float> all = whole(I, J);
    return DenseView<const float>(all.data, blocks.length(I), blocks.length(J), all.stride);
  };
  const MatrixXd S = Random(6).matrix(leading, 5);
  const MatrixXd corner = symmetric(n, 5).topLeftCorner(leading, leading);
  CHECK(relative_error(product<float>(workspace, part, S, nullptr, two), times(corner, S)) < tolerance<float>);
}

TEST_CASE_TEMPLATE("nothing is a product too", T, float, double) {
  SymmetricProduct<T> workspace;
  const TileSource<T> none = [](Index, Index) -> DenseView<const T> { return {}; };
  workspace.run(none, DenseView<const T>(nullptr, 0, 3), DenseView<T>(nullptr, 0, 3), nullptr, one);
  const MatrixXd M = symmetric(4, 7);
  const LowerTiles<T> tiles(M);
  workspace.run(tiles.source(), DenseView<const T>(nullptr, 4, 0), DenseView<T>(nullptr, 4, 0), nullptr, one);
  T value = 0;
  CHECK(rejection([&] {
          workspace.run(none, DenseView<const T>(&value, 1, 1), DenseView<T>(&value, 2, 1), nullptr, one);
        }) == "out has shape (2, 1), expected (1, 1)");
}

TEST_CASE("a product can be interrupted") {
  const Index n = 4 * tile<float>;
  const MatrixXd S = MatrixXd::Ones(n, 1);
  const std::vector<float> zeros(static_cast<std::size_t>(tile<float> * tile<float>), 0.0f);
  for (const int threads : {1, 2}) {
    Monitor monitor;
    std::atomic<int> asked{0};
    const TileSource<float> tiles = [&](Index, Index) {
      if (++asked == 6) monitor.stop();  // within the second of four rounds
      return DenseView<const float>(zeros.data(), tile<float>, tile<float>);
    };
    SymmetricProduct<float> workspace;
    CHECK_THROWS_AS(product<float>(workspace, tiles, S, nullptr, Execution{threads, &monitor}), Interrupted);
    CHECK(asked < 10);
  }
}
