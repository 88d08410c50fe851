#include <doctest/doctest.h>

#include "problems.hpp"
#include "taxolearn/base/vector.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

template <class T>
std::vector<T> random_vector(Index size, std::uint64_t seed) {
  const MatrixXd values = Random(seed).matrix(size, 1);
  return std::vector<T>(values.data(), values.data() + size);
}

/// The oracle: a plain loop in double precision.
template <class A, class B>
double plain_dot(const std::vector<A>& a, const std::vector<B>& b) {
  double sum = 0.0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += static_cast<double>(a[k]) * static_cast<double>(b[k]);
  return sum;
}

template <class A, class B>
void check_dot(Index size) {
  const std::vector<A> a = random_vector<A>(size, 1);
  const std::vector<B> b = random_vector<B>(size, 2);
  const double result = dot(a.data(), b.data(), size, one);
  CHECK(result == doctest::Approx(plain_dot(a, b)).epsilon(1e-12));
  CHECK(result == dot(a.data(), b.data(), size, two));
}

}  // namespace

TEST_CASE("dot adds up in double precision") {
  for (const Index size : {0, 1, 7, 2048, 20011}) {
    check_dot<float, float>(size);
    check_dot<double, double>(size);
    check_dot<double, float>(size);
  }
}

TEST_CASE_TEMPLATE("axpy adds a multiple", X, float, double) {
  for (const Index size : {0, 1, 7, 20011}) {
    const std::vector<X> x = random_vector<X>(size, 3);
    const std::vector<double> before = random_vector<double>(size, 4);
    std::vector<double> y = before;
    axpy(-1.7, x.data(), y.data(), size, two);
    for (std::size_t k = 0; k < y.size(); ++k) {
      REQUIRE(y[k] == doctest::Approx(before[k] - 1.7 * static_cast<double>(x[k])).epsilon(1e-14));
    }
    std::vector<double> serial = before;
    axpy(-1.7, x.data(), serial.data(), size, one);
    CHECK(serial == y);
  }
}

TEST_CASE_TEMPLATE("convert changes the precision", To, float, double) {
  for (const Index size : {0, 1, 7, 20011}) {
    std::vector<double> from = random_vector<double>(size, 6);
    for (double& value : from) value /= 3.0;  // not exact in single precision
    std::vector<To> to(from.size(), To(9));
    convert(from.data(), to.data(), size, two);
    CHECK(to == std::vector<To>(from.begin(), from.end()));
  }
}

TEST_CASE_TEMPLATE("column sums leave the padding alone", T, float, double) {
  for (const Index rows : {0, 1, 5000}) {
    for (const Index cols : {1, 3, 40}) {
      const MatrixXd S = Random(5).matrix(rows, cols);
      const Padded<T> padded(S);
      VectorXd sums = VectorXd::Constant(cols, 9.0);
      column_sums(padded.view(), sums.data(), one);
      CHECK((sums - S.colwise().sum().transpose()).norm() < 1e-10);
      VectorXd again = VectorXd::Constant(cols, 9.0);
      column_sums(padded.view(), again.data(), two);
      CHECK(identical(sums, again));
    }
  }
}
