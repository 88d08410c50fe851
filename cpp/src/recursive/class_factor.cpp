#include "class_factor.hpp"

#include <Eigen/SparseCholesky>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "taxolearn/base/check.hpp"

namespace taxolearn {
namespace {

std::vector<std::int32_t> up_to(Index count) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

}  // namespace

ClassFactor ClassFactor::of_classes(const std::vector<double>& variances) {
  ClassFactor out;
  out.variances_ = variances;
  out.scales_.assign(variances.size(), 1.0);
  out.places_ = up_to(static_cast<Index>(variances.size()));
  out.above_offsets_.assign(variances.size() + 1, 0);
  out.find_paths();
  return out;
}

ClassFactor ClassFactor::of_tree(const Taxonomy& taxonomy, const std::vector<double>& variances) {
  ClassFactor out;
  out.variances_ = variances;
  out.scales_.assign(variances.size(), 1.0);
  for (Index node = 0; node < taxonomy.nodes(); ++node) {
    if (node > 0) {
      out.above_.push_back(static_cast<std::int32_t>(taxonomy.parent(node)));
      out.factors_.push_back(1.0);
    }
    out.above_offsets_.push_back(static_cast<std::int32_t>(out.above_.size()));
  }
  out.node_places_ = up_to(taxonomy.nodes());
  out.places_.assign(out.node_places_.begin() + taxonomy.inner(), out.node_places_.end());
  out.find_paths();
  return out;
}

ClassFactor ClassFactor::of_graph(const NodePrecision& precision) {
  using Sparse = Eigen::SparseMatrix<double, Eigen::ColMajor, std::int32_t>;
  const Index nodes = precision.nodes();
  std::vector<Eigen::Triplet<double, std::int32_t>> entries;
  for (Index n = 0; n < nodes; ++n) {
    precision.for_row(n, [&](Index m, double value) {
      entries.emplace_back(static_cast<std::int32_t>(n), static_cast<std::int32_t>(m), value);
    });
  }
  Sparse Q(nodes, nodes);
  Q.setFromTriplets(entries.begin(), entries.end());
  const Eigen::SimplicialLLT<Sparse> cholesky(Q);
  require(cholesky.info() == Eigen::Success,
          "graph: the precision is not positive definite; every connected part of the graph needs a ridge");
  const Sparse L = cholesky.matrixL();

  // L^T x = z from the last row up: turned around, nodes come after those that they need.
  ClassFactor out;
  const auto turned = [&](Index place) { return static_cast<std::int32_t>(nodes - 1 - place); };
  for (Index j = nodes - 1; j >= 0; --j) {
    double diagonal = 1.0;
    const std::size_t first = out.above_.size();
    for (Sparse::InnerIterator entry(L, j); entry; ++entry) {
      if (entry.index() == j) {
        diagonal = entry.value();
      } else {
        out.above_.push_back(turned(entry.index()));
        out.factors_.push_back(-entry.value());
      }
    }
    for (std::size_t e = first; e < out.factors_.size(); ++e) out.factors_[e] /= diagonal;
    out.scales_.push_back(1.0 / diagonal);
    out.above_offsets_.push_back(static_cast<std::int32_t>(out.above_.size()));
  }
  out.variances_.assign(static_cast<std::size_t>(nodes), 1.0);
  const auto& place = cholesky.permutationP().indices();
  for (Index node = 0; node < nodes; ++node) out.node_places_.push_back(turned(place[node]));
  for (const std::int32_t node : precision.class_nodes) {
    out.places_.push_back(out.node_places_[static_cast<std::size_t>(node)]);
  }
  out.find_paths();
  return out;
}

// x_k = scale_k z_k + sum of factor x_above: a walk from the place of a class, where each node hands on what it counts.
// All that a node needs lies on its path in the elimination tree, whose next node is the nearest of these.
void ClassFactor::find_paths() {
  std::vector<double> counts(variances_.size(), 0.0);
  for (const std::int32_t place : places_) {
    counts[static_cast<std::size_t>(place)] = 1.0;
    for (std::int32_t k = place; k >= 0;) {
      const auto at = static_cast<std::size_t>(k);
      std::int32_t next = -1;
      for (std::int32_t e = above_offsets_[at]; e < above_offsets_[at + 1]; ++e) {
        const std::int32_t other = above_[static_cast<std::size_t>(e)];
        counts[static_cast<std::size_t>(other)] += counts[at] * factors_[static_cast<std::size_t>(e)];
        next = std::max(next, other);
      }
      if (counts[at] != 0.0) {
        path_parts_.push_back(k);
        path_values_.push_back(counts[at] * scales_[at]);
      }
      counts[at] = 0.0;
      k = next;
    }
    path_offsets_.push_back(static_cast<std::int64_t>(path_parts_.size()));
  }
}

double ClassFactor::diagonal(Index c) const {
  double sum = 0.0;
  for_path(c, [&](std::int32_t k, double value) { sum += variance(k) * value * value; });
  return sum;
}

NodePrecision precision_of_tree(const Taxonomy& taxonomy, const std::vector<double>& variances) {
  const auto nodes = static_cast<std::size_t>(taxonomy.nodes());
  std::vector<std::vector<std::pair<std::int32_t, double>>> rows(nodes);
  std::vector<double> diagonal(nodes, 0.0);
  for (std::size_t n = 0; n < nodes; ++n) {
    const double own = 1.0 / variances[n];
    diagonal[n] += own;
    if (n == 0) continue;
    const auto above = static_cast<std::size_t>(taxonomy.parent(static_cast<Index>(n)));
    diagonal[above] += own;
    rows[n].emplace_back(static_cast<std::int32_t>(above), -own);
    rows[above].emplace_back(static_cast<std::int32_t>(n), -own);
  }
  NodePrecision out;
  for (std::size_t n = 0; n < nodes; ++n) {
    rows[n].emplace_back(static_cast<std::int32_t>(n), diagonal[n]);
    std::sort(rows[n].begin(), rows[n].end());
    for (const auto& [column, value] : rows[n]) {
      out.columns.push_back(column);
      out.values.push_back(value);
    }
    out.offsets.push_back(static_cast<std::int64_t>(out.columns.size()));
  }
  for (Index c = 0; c < taxonomy.classes(); ++c) {
    out.class_nodes.push_back(static_cast<std::int32_t>(taxonomy.inner() + c));
  }
  return out;
}

void check_precision(const NodePrecision& precision, Index classes) {
  const Index nodes = precision.nodes();
  require(nodes >= 1, "graph has no nodes");
  require(precision.offsets.front() == 0 && std::is_sorted(precision.offsets.begin(), precision.offsets.end()),
          "graph: offsets must start at 0 and never fall");
  require(precision.columns.size() == precision.values.size() &&
              precision.offsets.back() == static_cast<std::int64_t>(precision.columns.size()),
          "graph has ", precision.columns.size(), " columns and ", precision.values.size(), " values, expected ",
          precision.offsets.back(), " each");
  const auto entry = [&](Index n, Index m) {
    const auto begin = precision.columns.begin() + precision.offsets[static_cast<std::size_t>(n)];
    const auto end = precision.columns.begin() + precision.offsets[static_cast<std::size_t>(n + 1)];
    const auto found = std::lower_bound(begin, end, static_cast<std::int32_t>(m));
    return found != end && *found == m ? precision.values[static_cast<std::size_t>(found - precision.columns.begin())]
                                       : 0.0;
  };
  for (Index n = 0; n < nodes; ++n) {
    Index last = -1;
    precision.for_row(n, [&](Index m, double value) {
      require(m > last && m < nodes, "graph: row ", n, " has the column ", m, " after ", last,
              ", expected ascending numbers below ", nodes);
      require(std::isfinite(value), "graph: element (", n, ", ", m, ") is ", value, ", expected a finite number");
      last = m;
    });
  }
  for (Index n = 0; n < nodes; ++n) {
    precision.for_row(n, [&](Index m, double value) {
      require(std::abs(entry(m, n) - value) <= 1e-12 * std::abs(value), "graph: elements (", n, ", ", m, ") and (", m,
              ", ", n, ") are ", value, " and ", entry(m, n), ", expected a symmetric matrix");
    });
    require(entry(n, n) > 0.0, "graph: element (", n, ", ", n, ") is ", entry(n, n), ", expected a number above zero");
  }
  require(static_cast<Index>(precision.class_nodes.size()) == classes, "graph: there are nodes of ",
          precision.class_nodes.size(), " classes, expected ", classes);
  std::vector<bool> taken(static_cast<std::size_t>(nodes), false);
  for (const std::int32_t node : precision.class_nodes) {
    require(node >= 0 && node < nodes, "graph: a class is node ", node, ", expected 0 to ", nodes - 1);
    require(!taken[static_cast<std::size_t>(node)], "graph: two classes are node ", node);
    taken[static_cast<std::size_t>(node)] = true;
  }
}

}  // namespace taxolearn
