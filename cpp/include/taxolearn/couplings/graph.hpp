// The coupling of classes that are nodes of a graph.
#pragma once

#include <cstdint>
#include <vector>

#include "taxolearn/couplings/coupling.hpp"

namespace taxolearn {

/// The prior precision of functions on the nodes of a graph, where neighbours are alike (Gopal, Yang 2015, section 4):
/// Q = sum_k weights[k] (e_i - e_j) (e_i - e_j)^T + diag(ridges), edge k between the nodes i = first[k], j = second[k].
struct GraphPrecision {
  std::vector<Index> first;
  std::vector<Index> second;
  std::vector<double> weights;  ///< of the edges, > 0
  std::vector<double> ridges;   ///< of the nodes, >= 0, in each component of the graph one > 0

  Index nodes() const { return static_cast<Index>(ridges.size()); }

  /// Throws InvalidArgument unless all is as said here.
  void check() const;
};

/// Classes are some of the nodes, the others are summed out: G = variance (Q^-1)[classes, classes]. Parameters are the
/// logarithms of the variance and of a factor of all ridges.
///
/// With a sparse Cholesky factor Q = L L^T, R = sqrt(variance) L^-T [classes, all] has a column for every node, and
/// products are substitutions, O(entries of L) per row. All entries of L beside its diagonal are negative and those of
/// L^-1 positive, so substitutions only ever add terms of the sign of S: their rounding errors are those of a product
/// with G, however small the ridge, in single precision too. Where G has few entries beside L, as for few classes of a
/// large graph, it is stored instead, with its own Cholesky factor for R.
class GraphCoupling final : public Coupling {
 public:
  /// The node of every class.
  GraphCoupling(const GraphPrecision& precision, const std::vector<Index>& classes, double variance);

  Index classes() const override { return static_cast<Index>(place_of_class_.size()); }
  Index factors() const override { return is_stored() ? classes() : nodes(); }
  void apply(Index count, float* S) const override;
  void apply(Index count, double* S) const override;
  void to_factors(Index count, const double* S, double* out) const override;
  void from_factors(Index count, const double* A, double* out) const override;
  void diag(double* out) const override;
  Index parameters() const override { return 2; }
  void bilinear_grad(Index count, const double* E, const double* H, double* gradient) const override;

  /// Whether G itself is stored.
  bool is_stored() const { return covariance_.rows() > 0; }

  /// Entries of L.
  Index entries() const { return static_cast<Index>(factor_.down.column.size()) + nodes(); }

 private:
  /// x[k] = scale[k] b[k] + sum of value x[column] over the entries of row k.
  template <class T>
  struct Substitution {
    std::vector<std::int32_t> begin;
    std::vector<std::int32_t> column;
    std::vector<T> value;
    std::vector<T> scale;
  };
  /// The systems of L, from the first row down, and of L^T, from the last row up.
  template <class T>
  struct Factor {
    Substitution<T> down;
    Substitution<T> up;
  };

  Index nodes() const { return static_cast<Index>(ridges_.size()); }
  void factorize(const GraphPrecision& precision, double variance);
  void store();
  template <class T>
  void apply_rows(Index count, const Factor<T>& factor, const Matrix<T>& covariance, T* S) const;
  template <class T>
  void load_classes(const DenseView<const T>& rows, T* tile) const;
  template <class T>
  void save_classes(const T* tile, const DenseView<T>& rows) const;
  template <class T>
  static void solve_down(const Substitution<T>& system, T* tile);
  template <class T>
  static void solve_up(const Substitution<T>& system, T* tile);

  std::vector<std::int32_t> place_of_class_;  ///< in the order of elimination
  std::vector<double> ridges_;                ///< in this order, divided by the variance
  Factor<double> factor_;                     ///< of Q / variance
  Factor<float> single_;
  Matrix<double> covariance_;  ///< G, if it is stored
  Matrix<double> root_;        ///< its Cholesky factor
  Matrix<float> single_covariance_;
};

}  // namespace taxolearn
