// How a fit is done. What is `automatic` is decided in choose.hpp.
#pragma once

namespace taxolearn {

enum class Method {
  automatic,  ///< lbfgs where its vectors fit into the memory granted, else nonlinear_cg
  lbfgs,
  nonlinear_cg,
  newton,  ///< linear systems by conjugate gradients
  exact,   ///< Newton with linear systems by Cholesky factors: O(C n^3), flat models only
};

/// The vectors that the solver works on. Both give the same iterates, up to rounding.
enum class Space {
  automatic,     ///< the smaller one; coefficients unless the kernel is linear
  coefficients,  ///< alpha, n x C, in the kernel's metric
  weights,       ///< W, d x columns of R, and b
};

/// Precision of the kernel products. Points and sums are in double precision always.
enum class Precision {
  automatic,  ///< single for large problems, double once single has reached its limit
  single,
  double_,
};

struct FitSettings {
  Method method = Method::automatic;
  Space space = Space::automatic;
  Precision precision = Precision::automatic;
  double tolerance = 1e-6;  ///< on the certified gap relative to the objective
  int max_iterations = 1000;
  int history = 0;  ///< pairs of L-BFGS; 0: few where a vector is n x C with its image, more where it is small
  double memory_limit = 4e9;   ///< bytes that the solver's vectors, or exact factors, may take
  bool exact_fallback = true;  ///< whether exact steps finish what an automatic method does not, if that takes seconds
  bool keep_point = false;     ///< whether the result keeps the point that the solver reached
};

}  // namespace taxolearn
