// The prior covariance of the classes in factors, for trees and graphs alike.
//
// G = R V R^T with parts k = 0 .. K - 1 of variances v_k. The weights of class c are w_c = sum_k R_ck D_k, where part k has
//
//   D_k = v_k sum_c R_ck a_c,   1/2 tr(a^T G a) = 1/2 sum_k |D_k|^2 / v_k.
//
// In a tree part k is node k, and R_ck = 1 on the path of c: D_k is what the node adds to its parent. With a precision
// Q = L L^T of the nodes of a graph, R is L^-T at the classes, whose entries lie on paths of the elimination tree, and all
// v_k = 1. Without either every class is a part.
#pragma once

#include <cstdint>
#include <vector>

#include "taxolearn/recursive/problem.hpp"

namespace taxolearn {

class ClassFactor {
 public:
  static ClassFactor of_classes(const std::vector<double>& variances);
  static ClassFactor of_tree(const Taxonomy& taxonomy, const std::vector<double>& variances);
  /// Throws InvalidArgument unless the precision is positive definite.
  static ClassFactor of_graph(const NodePrecision& precision);

  Index parts() const { return static_cast<Index>(variances_.size()); }
  Index classes() const { return static_cast<Index>(places_.size()); }
  double variance(Index k) const { return variances_[static_cast<std::size_t>(k)]; }

  /// Where to_nodes leaves the sum of class c.
  std::int32_t place(Index c) const { return places_[static_cast<std::size_t>(c)]; }

  /// The same for any node of a tree or graph.
  std::int32_t place_of_node(Index node) const { return node_places_[static_cast<std::size_t>(node)]; }

  /// z (one number per part) becomes sum_k R_ck z_k at place(c), and the same of all other nodes.
  template <class T>
  void to_nodes(T* z) const {
    if (above_.empty()) return;
    for (std::size_t k = 0; k < variances_.size(); ++k) {
      double sum = scales_[k] * static_cast<double>(z[k]);
      for (std::int32_t e = above_offsets_[k]; e < above_offsets_[k + 1]; ++e) {
        const auto at = static_cast<std::size_t>(e);
        sum += factors_[at] * static_cast<double>(z[above_[at]]);
      }
      z[k] = static_cast<T>(sum);
    }
  }

  /// take(k, R_ck) for the nonzeros of row c.
  template <class Take>
  void for_path(Index c, const Take& take) const {
    const auto at = static_cast<std::size_t>(c);
    for (std::int64_t e = path_offsets_[at]; e < path_offsets_[at + 1]; ++e) {
      take(path_parts_[static_cast<std::size_t>(e)], path_values_[static_cast<std::size_t>(e)]);
    }
  }

  /// G_cc.
  double diagonal(Index c) const;

 private:
  void find_paths();

  std::vector<double> variances_;
  std::vector<std::int32_t> node_places_, places_;
  // Node k is scale_k z_k plus a sum over some nodes before it.
  std::vector<double> scales_;
  std::vector<std::int32_t> above_offsets_{0}, above_;
  std::vector<double> factors_;
  std::vector<std::int64_t> path_offsets_{0};
  std::vector<std::int32_t> path_parts_;
  std::vector<double> path_values_;
};

/// The precision of all nodes under a tree's prior: sum_n |w_n - w_parent(n)|^2 / v_n = sum_nm Q_nm w_n . w_m.
NodePrecision precision_of_tree(const Taxonomy& taxonomy, const std::vector<double>& variances);

/// Throws InvalidArgument unless it is a symmetric matrix and classes are nodes of it.
void check_precision(const NodePrecision& precision, Index classes);

}  // namespace taxolearn
