// What came out of a fit.
#pragma once

#include <string>
#include <vector>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/fit/settings.hpp"
#include "taxolearn/solver/minimize.hpp"

namespace taxolearn {

/// Seconds by phase.
struct Timings {
  double setup = 0.0;        ///< arranging the inputs, allocating
  double products = 0.0;     ///< kernel products
  double likelihood = 0.0;   ///< residuals and line searches
  double vectors = 0.0;      ///< inner products and combinations, systems with the Kronecker preconditioner
  double certificate = 0.0;  ///< final weights and their gap in double precision
  double total = 0.0;

  Timings& operator+=(const Timings& other) {
    setup += other.setup;
    products += other.products;
    likelihood += other.likelihood;
    vectors += other.vectors;
    certificate += other.certificate;
    total += other.total;
    return *this;
  }
};

/// Functions u_k(x) = sum_i coefficients[i, k] k_l(x, x_i) over some rows of the inputs: what prediction needs of
/// kernel l.
struct Expansion {
  std::vector<Index> basis;     ///< rows of X; empty: all
  Matrix<double> coefficients;  ///< basis x functions
  Matrix<double> weights;       ///< what linear blocks add, under low_rank: their features x functions; else empty
};

struct FitResult {
  Status status = Status::max_iter;
  int iterations = 0;
  int products = 0;           ///< kernel products of any precision, those of the certificate included
  double objective = 0.0;     ///< Phi at the weights returned
  double gap = 0.0;           ///< certified in double precision: Phi - min Phi <= gap
  double relative_gap = 0.0;  ///< gap / objective
  Method method = Method::lbfgs;
  std::string algorithm;      ///< of the kernel products: sparse, dense, blocks, stored, gram, tiled, low_rank
  std::string reason;         ///< why this method and this algorithm
  double kernel_bytes = 0.0;  ///< of stored kernel matrices or their factors
  std::vector<Index> ranks;   ///< of the factors, under low_rank
  Space space = Space::coefficients;
  Precision precision = Precision::double_;  ///< of the last products
  Timings timings;
  Matrix<double> weights;  ///< d x C: u(x) = weights^T x + intercepts; of the linear kernel only
  std::vector<double> intercepts;
  std::vector<Expansion> expansions;  ///< per kernel, else
  Buffer<double> point;               ///< if it was to be kept: alpha (n x C), or W followed by b
};

}  // namespace taxolearn
