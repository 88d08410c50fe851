// Conditional gradients, one row at a time, for quadratic programs over products of polytopes that are known by an
// oracle: the best vertex for a gradient (Rousu, Saunders, Szedmak, Shawe-Taylor 2006, algorithms 1 and 2).
//
// Row i has vertices v with a loss l_iv and signs s_iv in {-1, 0, 1}^c; its truth is the vertex 0, with loss 0. Points are
// convex combinations a_i of the vertices, sum_v a_iv = 1, a_iv >= 0, and with
//
//   m_i = C_i (s_i0 - sum_v a_iv s_iv)   (length c),   z_ir = sum_i' k_ii' m_i'r,   g_ir = omega_r z_ir,
//
// the problem and its dual, structured hinge losses with weights W_r = sum_i m_ir x_i, are
//
//   max_a  D(a) = sum_i C_i sum_v a_iv l_iv - 1/2 |W|^2,   |W|^2 = sum_r omega_r sum_ii' k_ii' m_ir m_i'r,
//   min_W  P(W) = 1/2 |W|^2 + sum_i C_i max_v q_iv,        q_iv = l_iv + g_i . (s_iv - s_i0).
//
// D's derivative by a_iv is C_i q_iv, so P - D = sum_i C_i (max_v q_iv - sum_v a_iv q_iv): one call of the oracle per row
// gives both the direction of ascent and the row's share of the duality gap. A step moves weight t from vertex s to vertex
// v, and the best one is known in closed form (10):
//
//   t = min(a_is, (q_iv - q_is) / (C_i k_ii |s_iv - s_is|^2_omega)).
//
// Steps go pairwise, from the worst vertex that has weight to the best of all: plain conditional gradients, which take the
// same share from all vertices, are slow near the optimum. Every visit of a row first asks the oracle and then moves weights
// between the vertices that the row has, so rows keep the few vertices that they need, not all marginals.
//
// Rows are visited in batches of fixed size: the products z of a batch and the kernel among its rows are computed on all
// threads, then its rows take their steps one after the other, each correcting z of those behind it. So D rises as in the
// serial algorithm, and the result is the same for any number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"
#include "taxolearn/solver/minimize.hpp"

namespace taxolearn {

/// The vertices of all rows. Any number of threads may ask at the same time.
class VertexOracle {
 public:
  virtual ~VertexOracle() = default;
  virtual const std::vector<double>& omega() const = 0;  ///< length c
  virtual void truth(Index row, std::int8_t* signs) const = 0;

  /// Writes the signs of the vertex with the largest loss + gradient . signs, the truth if none is better, and returns
  /// its loss.
  virtual double best(Index row, const double* gradient, std::int8_t* signs) const = 0;
};

/// Products with the kernel matrix, given the multipliers m (n x c), which start at zero.
class MultiplierProducts {
 public:
  virtual ~MultiplierProducts() = default;
  virtual Index rows() const = 0;
  virtual void diag(double* out) const = 0;  ///< k_ii

  /// z of some rows (rows x c), and unless null the kernel among them (rows x rows; what lies above the diagonal).
  virtual void products(const std::vector<Index>& rows, DenseView<double> z, DenseView<double> among,
                        const Execution& execution) = 0;

  /// Adds changes (rows x c) to the multipliers of some rows.
  virtual void add(const std::vector<Index>& rows, DenseView<const double> changes, const Execution& execution) = 0;

  /// Sets all multipliers to zero.
  virtual void clear() = 0;
};

/// A point in a row's polytope: vertices other than the truth, and their weights. What is missing to 1 is the truth's.
struct VertexWeights {
  std::vector<double> weights;
  std::vector<double> losses;
  std::vector<std::int8_t> signs;  ///< vertices x c
};

struct ConditionalGradientSettings {
  double tolerance = 1e-2;     ///< on the certified gap relative to the objective
  int max_iterations = 10000;  ///< passes over all rows or those with large gaps
  std::uint64_t seed = 0;      ///< of the order of rows
};

struct ConditionalGradientResult {
  Status status = Status::max_iter;
  int iterations = 0;
  double passes = 0.0;       ///< visits of a row, divided by their number
  double objective = 0.0;    ///< P at the end
  double gap = 0.0;          ///< P - D, certified: computed for all rows from the weights of their vertices alone
  std::vector<double> sums;  ///< sum_i m_i
};

/// Maximizes D from the given point, which it leaves at its last. `costs` are C_i, `bias` is a feature of every row whose
/// square joins all k_ii'. The multipliers of `products` end at those of the point.
ConditionalGradientResult maximize_over_vertices(const VertexOracle& oracle, MultiplierProducts& products,
                                                 const std::vector<double>& costs, double bias,
                                                 const ConditionalGradientSettings& settings,
                                                 std::vector<VertexWeights>& point, const Execution& execution);

}  // namespace taxolearn
