#include "kernel_cases.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

/// Random sequences of four letters as sparse rows of codes.
struct Strings {
  std::vector<std::vector<int>> letters;
  std::vector<float> values;
  std::vector<std::int32_t> columns, offsets{0};

  Strings(int count, int longest, unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < count; ++i) {
      std::vector<int> one_string(random() % static_cast<unsigned>(longest + 1));
      for (std::size_t k = 0; k < one_string.size(); ++k) {
        one_string[k] = static_cast<int>(random() % 4) + 65;
        values.push_back(static_cast<float>(one_string[k]));
        columns.push_back(static_cast<std::int32_t>(k));
      }
      offsets.push_back(static_cast<std::int32_t>(values.size()));
      letters.push_back(one_string);
    }
  }

  InputView view() const {
    return SparseView<float, std::int32_t>{values.data(), columns.data(), offsets.data(),
                                           static_cast<Index>(letters.size()), 1000};
  }
};

/// The sum over pairs of subsequences of n letters, by the sums over all shorter prefixes.
double subsequences(const std::vector<int>& s, const std::vector<int>& t, int n, double decay) {
  MatrixXd weight(s.size(), t.size());  // of pairs that end at these two letters, without what comes after
  for (int k = 1; k <= n; ++k) {
    const MatrixXd before = weight;
    for (Index a = 0; a < weight.rows(); ++a) {
      for (Index b = 0; b < weight.cols(); ++b) {
        double sum = k == 1 ? 1.0 : 0.0;
        for (Index c = 0; k > 1 && c < a; ++c) {
          for (Index d = 0; d < b; ++d) sum += before(c, d) * std::pow(decay, static_cast<double>(a - c + b - d - 2));
        }
        const bool same = s[static_cast<std::size_t>(a)] == t[static_cast<std::size_t>(b)];
        weight(a, b) = same ? decay * decay * sum : 0.0;
      }
    }
  }
  return weight.sum();
}

}  // namespace

TEST_CASE_TEMPLATE("subsequences by their sums, in blocks of selected rows that mirror each other", T, float, double) {
  const Strings strings(60, 24, 1);
  std::vector<Index> some(45);
  for (std::size_t k = 0; k < some.size(); ++k) some[k] = static_cast<Index>((k * 7 + 5) % 60);
  const InputRows rows{strings.view(), some};
  for (const int length : {1, 2, 4, 8}) {
    const double decay = 0.8;
    const auto kernel = make_subsequence_kernel(length, decay, false, 1.5);
    MatrixXd slow(45, 45);
    for (Index i = 0; i < 45; ++i) {
      for (Index j = 0; j < 45; ++j) {
        const auto string = [&](Index k) { return strings.letters[static_cast<std::size_t>(rows.source(k))]; };
        slow(i, j) = 1.5 * subsequences(string(i), string(j), length, decay);
      }
    }
    CAPTURE(length);
    const auto entries = kernel_entries<T>(*kernel, rows, rows, two);
    Padded<T> block(20, 23), mirrored(23, 20), diagonal(31, 31);
    entries->block(22, 1, block.view());
    entries->block(1, 22, mirrored.view());
    entries->block(9, 9, diagonal.view());
    CHECK(block.padding_untouched());
    CHECK(largest_error<T>(dense(block.view()), slow.block(22, 1, 20, 23)) < accuracy<T>);
    CHECK(identical(dense(mirrored.view()), dense(block.view()).transpose()));
    CHECK(largest_error<T>(dense(diagonal.view()), slow.block(9, 9, 31, 31)) < accuracy<T>);
    CHECK(identical(dense(diagonal.view()), dense(diagonal.view()).transpose()));
    VectorXd own(45);
    kernel->diag(rows, own.data());
    CHECK((own - slow.diagonal()).cwiseAbs().maxCoeff() <= 1e-13 * slow.maxCoeff());
  }
}

TEST_CASE("derivatives of matrices and diagonals of strings are differences") {
  const Strings strings(30, 40, 2);
  const InputRows rows{strings.view(), {}};
  const MatrixXd Q = Random(3).matrix(30, 30);
  const Matrix<double> weights = as_matrix(Q);
  const VectorXd q = Q.row(0);
  for (const bool normalized : {false, true}) {
    CAPTURE(normalized);
    const auto make = [&](const double* theta) {
      return make_subsequence_kernel(3, std::exp(theta[0]), normalized, std::exp(theta[1]));
    };
    const double at[] = {-0.5, 0.3}, step = 1e-6;
    double exact[2], diagonal[2] = {};
    kernel_gradient(*make(at), rows, rows, weights.view(), exact, one);
    make(at)->diag_gradient(rows, q.data(), diagonal);
    for (int k = 0; k < 2; ++k) {
      double up[] = {at[0], at[1]}, down[] = {at[0], at[1]};
      up[k] += step;
      down[k] -= step;
      const MatrixXd high = matrix<double>(*make(up), rows, rows), low = matrix<double>(*make(down), rows, rows);
      const double size = (Q.cwiseAbs().cwiseProduct(high)).sum();
      CHECK(std::abs(exact[k] - (Q.cwiseProduct(high - low)).sum() / (2 * step)) < 1e-7 * size);
      VectorXd own_high(30), own_low(30);
      make(up)->diag(rows, own_high.data());
      make(down)->diag(rows, own_low.data());
      CHECK(std::abs(diagonal[k] - q.dot(own_high - own_low) / (2 * step)) < 1e-7 * size);
    }
  }
}

TEST_CASE("what is no sequence is refused") {
  const std::vector<float> values{1.0F, 2.5F};
  const std::vector<std::int32_t> columns{0, 2}, offsets{0, 1, 2};
  const InputView gap = SparseView<float, std::int32_t>{values.data(), columns.data(), offsets.data(), 2, 3};
  const auto kernel = make_spectrum_kernel({2}, true, 1.0);
  const InputRows rows{gap, {}};
  CHECK(rejection([&] { matrix<double>(*kernel, rows, rows); }).find("entry 0 is in column 2") != std::string::npos);
  const Matrix<double> numbers(2, 2);
  const InputRows others{numbers.view(), {}};
  CHECK(rejection([&] { matrix<double>(*kernel, others, others); }).find("dense") != std::string::npos);
  CHECK(rejection([] { make_subsequence_kernel(9, 0.5, true, 1.0); }).find("from 1 to 8") != std::string::npos);
  CHECK(rejection([] { make_subsequence_kernel(4, 1.1, true, 1.0); }).find("at most 1") != std::string::npos);
  CHECK(rejection([] { make_weighted_degree_kernel({}, true, 1.0); }).find("empty") != std::string::npos);
}
