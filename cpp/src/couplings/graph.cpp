#include "taxolearn/couplings/graph.hpp"

#include <Eigen/SparseCholesky>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/product.hpp"
#include "taxolearn/base/triangular.hpp"
#include "tile.hpp"

namespace taxolearn {
namespace {

using SparseMatrix = Eigen::SparseMatrix<double, Eigen::ColMajor, std::int32_t>;

constexpr Index tile_rows = 16;         // that go through the graph together: one or a few vectors
constexpr double stored_entries = 8.0;  // of G per entry of L: with fewer, a product with G is the faster one

template <class T>
constexpr int packets = static_cast<int>(tile_rows / lanes<T>);

/// Q divided by the variance.
SparseMatrix sparse(const GraphPrecision& precision, double variance) {
  std::vector<Eigen::Triplet<double, std::int32_t>> entries;
  const auto add = [&](Index i, Index j, double value) {
    entries.emplace_back(static_cast<std::int32_t>(i), static_cast<std::int32_t>(j), value / variance);
  };
  for (std::size_t k = 0; k < precision.weights.size(); ++k) {
    const Index i = precision.first[k];
    const Index j = precision.second[k];
    add(i, i, precision.weights[k]);
    add(j, j, precision.weights[k]);
    add(std::max(i, j), std::min(i, j), -precision.weights[k]);
  }
  for (Index i = 0; i < precision.nodes(); ++i) add(i, i, precision.ridges[static_cast<std::size_t>(i)]);
  SparseMatrix out(precision.nodes(), precision.nodes());
  out.setFromTriplets(entries.begin(), entries.end());
  return out;
}

/// body(first row, rows) for tiles of rows.
template <class Body>
void for_tiles(Index count, const Body& body) {
  for (Index first = 0; first < count; first += tile_rows) body(first, std::min(tile_rows, count - first));
}

/// tile[place(c)][r] = rows[r, c] for the rows of a tile.
template <class T, class Place>
void load(const DenseView<const T>& rows, T* tile, const Place& place) {
  for (Index r = 0; r < tile_rows; r += lanes<T>) {
    const Index number = std::clamp<Index>(rows.rows - r, 0, lanes<T>);
    to_tile(DenseView<const T>(rows.data + r * rows.stride, number, rows.cols, rows.stride),
            [&](Index c) { return tile + place(c) * tile_rows + r; });
  }
}

template <class T, class Place>
void save(const T* tile, const DenseView<T>& rows, const Place& place) {
  for (Index r = 0; r < rows.rows; r += lanes<T>) {
    const Index number = std::min<Index>(rows.rows - r, lanes<T>);
    from_tile([&](Index c) { return tile + place(c) * tile_rows + r; },
              DenseView<T>(rows.row(r), number, rows.cols, rows.stride));
  }
}

Index in_order(Index k) { return k; }

}  // namespace

void GraphPrecision::check() const {
  require(nodes() > 0, "the graph has no nodes");
  require(first.size() == weights.size() && second.size() == weights.size(), "first, second and weights have ",
          first.size(), ", ", second.size(), " and ", weights.size(), " elements, expected one each per edge");
  std::vector<Index> component(ridges.size());
  std::iota(component.begin(), component.end(), Index(0));
  const auto find = [&](Index i) {
    while (component[static_cast<std::size_t>(i)] != i) {
      Index& above = component[static_cast<std::size_t>(i)];
      above = component[static_cast<std::size_t>(above)];
      i = above;
    }
    return i;
  };
  for (std::size_t k = 0; k < weights.size(); ++k) {
    for (const Index node : {first[k], second[k]})
      require(node >= 0 && node < nodes(), "edge ", k, " has the node ", node, ", expected 0 to ", nodes() - 1);
    require(first[k] != second[k], "edge ", k, " joins node ", first[k], " to itself");
    require(std::isfinite(weights[k]) && weights[k] > 0.0, "weights[", k, "] is ", weights[k],
            ", expected a finite number above 0");
    component[static_cast<std::size_t>(find(first[k]))] = find(second[k]);
  }
  std::vector<bool> is_held(ridges.size(), false);
  for (Index i = 0; i < nodes(); ++i) {
    const double ridge = ridges[static_cast<std::size_t>(i)];
    require(std::isfinite(ridge) && ridge >= 0.0, "ridges[", i, "] is ", ridge,
            ", expected a finite number of at least 0");
    if (ridge > 0.0) is_held[static_cast<std::size_t>(find(i))] = true;
  }
  for (Index i = 0; i < nodes(); ++i)
    require(is_held[static_cast<std::size_t>(find(i))], "no node that is connected with node ", i, " has a ridge");
}

GraphCoupling::GraphCoupling(const GraphPrecision& precision, const std::vector<Index>& classes, double variance) {
  precision.check();
  require(std::isfinite(variance) && variance > 0.0, "variance is ", variance, ", expected a finite number above 0");
  require(!classes.empty(), "classes is empty, expected the nodes of one or more classes");
  std::vector<bool> is_class(precision.ridges.size(), false);
  for (const Index node : classes) {
    require(node >= 0 && node < precision.nodes(), "classes has the node ", node, ", expected 0 to ",
            precision.nodes() - 1);
    require(!is_class[static_cast<std::size_t>(node)], "classes has the node ", node, " twice");
    is_class[static_cast<std::size_t>(node)] = true;
    place_of_class_.push_back(static_cast<std::int32_t>(node));
  }
  factorize(precision, variance);
  const auto C = static_cast<double>(classes.size());
  if (C * C <= stored_entries * static_cast<double>(entries())) store();
}

void GraphCoupling::factorize(const GraphPrecision& precision, double variance) {
  const Eigen::SimplicialLLT<SparseMatrix> cholesky(sparse(precision, variance));
  require(cholesky.info() == Eigen::Success,
          "the precision of the graph is not positive definite in this arithmetic: the ridges are too small beside the "
          "weights");
  const SparseMatrix L = cholesky.matrixL();
  const auto& place = cholesky.permutationP().indices();
  ridges_.resize(precision.ridges.size());
  for (Index i = 0; i < precision.nodes(); ++i)
    ridges_[static_cast<std::size_t>(place[i])] = precision.ridges[static_cast<std::size_t>(i)] / variance;
  for (std::int32_t& node : place_of_class_) node = place[node];

  // Columns of L^T are rows of L.
  const auto rows_of = [](const auto& columns, Substitution<double>& out) {
    out.begin.push_back(0);
    for (Index k = 0; k < columns.outerSize(); ++k) {
      double scale = 1.0;
      const auto first = static_cast<std::ptrdiff_t>(out.value.size());
      for (typename std::decay_t<decltype(columns)>::InnerIterator entry(columns, k); entry; ++entry) {
        if (entry.index() == k) {
          scale = 1.0 / entry.value();
        } else {
          out.column.push_back(static_cast<std::int32_t>(entry.index()));
          out.value.push_back(-entry.value());
        }
      }
      std::for_each(out.value.begin() + first, out.value.end(), [scale](double& value) { value *= scale; });
      out.begin.push_back(static_cast<std::int32_t>(out.column.size()));
      out.scale.push_back(scale);
    }
  };
  rows_of(SparseMatrix(L.transpose()), factor_.down);
  rows_of(L, factor_.up);
  const auto rounded = [](const Substitution<double>& from, Substitution<float>& to) {
    to = {from.begin, from.column, {from.value.begin(), from.value.end()}, {from.scale.begin(), from.scale.end()}};
  };
  rounded(factor_.down, single_.down);
  rounded(factor_.up, single_.up);
}

void GraphCoupling::store() {
  Matrix<double> covariance(classes(), classes());
  for (Index c = 0; c < classes(); ++c) covariance.row(c)[c] = 1.0;
  apply(classes(), covariance.data());
  Matrix<double> root = covariance;
  if (!factor_cholesky(root.view())) return;  // a tiny ridge: all functions are the same up to rounding
  single_covariance_ = Matrix<float>(classes(), classes());
  std::transform(covariance.data(), covariance.data() + covariance.size(), single_covariance_.data(),
                 [](double value) { return static_cast<float>(value); });
  covariance_ = std::move(covariance);
  root_ = std::move(root);
}

template <class T>
void GraphCoupling::load_classes(const DenseView<const T>& rows, T* tile) const {
  if (classes() < nodes()) std::fill(tile, tile + nodes() * tile_rows, T(0));
  load(rows, tile, [&](Index c) { return place_of_class_[static_cast<std::size_t>(c)]; });
}

template <class T>
void GraphCoupling::save_classes(const T* tile, const DenseView<T>& rows) const {
  save(tile, rows, [&](Index c) { return place_of_class_[static_cast<std::size_t>(c)]; });
}

template <class T>
inline void substitute(Index k, std::int32_t begin, std::int32_t end, const std::int32_t* column, const T* value,
                       T scale, T* tile) {
  using P = Packet<T>;
  P sum[packets<T>];
  T* const own = tile + k * tile_rows;
  const P factor = pset1<P>(scale);
  unrolled<packets<T>>([&](auto p) { sum[p] = pmul(factor, pload<P>(own + p * lanes<T>)); });
  for (std::int32_t e = begin; e < end; ++e) {
    const T* const other = tile + static_cast<Index>(column[e]) * tile_rows;
    const P weight = pset1<P>(value[e]);
    unrolled<packets<T>>([&](auto p) { sum[p] = pmadd(weight, pload<P>(other + p * lanes<T>), sum[p]); });
  }
  unrolled<packets<T>>([&](auto p) { pstore(own + p * lanes<T>, sum[p]); });
}

template <class T>
void GraphCoupling::solve_down(const Substitution<T>& system, T* tile) {
  const auto rows = static_cast<Index>(system.scale.size());
  for (Index k = 0; k < rows; ++k)
    substitute(k, system.begin[static_cast<std::size_t>(k)], system.begin[static_cast<std::size_t>(k + 1)],
               system.column.data(), system.value.data(), system.scale[static_cast<std::size_t>(k)], tile);
}

template <class T>
void GraphCoupling::solve_up(const Substitution<T>& system, T* tile) {
  for (auto k = static_cast<Index>(system.scale.size()) - 1; k >= 0; --k)
    substitute(k, system.begin[static_cast<std::size_t>(k)], system.begin[static_cast<std::size_t>(k + 1)],
               system.column.data(), system.value.data(), system.scale[static_cast<std::size_t>(k)], tile);
}

template <class T>
void GraphCoupling::apply_rows(Index count, const Factor<T>& factor, const Matrix<T>& covariance, T* S) const {
  thread_local Buffer<T> scratch;
  if (is_stored()) {
    scratch.assign(S, S + count * classes());
    set_product(Product::AB, DenseView<const T>(scratch.data(), count, classes()), covariance.view(),
                DenseView<T>(S, count, classes()));
    return;
  }
  scratch.resize(static_cast<std::size_t>(nodes() * tile_rows));
  for_tiles(count, [&](Index first, Index number) {
    const DenseView<T> rows(S + first * classes(), number, classes());
    load_classes<T>(rows, scratch.data());
    solve_down(factor.down, scratch.data());
    solve_up(factor.up, scratch.data());
    save_classes(scratch.data(), rows);
  });
}

void GraphCoupling::apply(Index count, float* S) const { apply_rows(count, single_, single_covariance_, S); }
void GraphCoupling::apply(Index count, double* S) const { apply_rows(count, factor_, covariance_, S); }

void GraphCoupling::to_factors(Index count, const double* S, double* out) const {
  if (is_stored()) {
    set_product(Product::AB, DenseView<const double>(S, count, classes()), root_.view(),
                DenseView<double>(out, count, classes()));
    return;
  }
  thread_local Buffer<double> tile;
  tile.resize(static_cast<std::size_t>(nodes() * tile_rows));
  for_tiles(count, [&](Index first, Index number) {
    load_classes(DenseView<const double>(S + first * classes(), number, classes()), tile.data());
    solve_down(factor_.down, tile.data());
    save(tile.data(), DenseView<double>(out + first * nodes(), number, nodes()), in_order);
  });
}

void GraphCoupling::from_factors(Index count, const double* A, double* out) const {
  if (is_stored()) {
    set_product(Product::ABt, DenseView<const double>(A, count, classes()), root_.view(),
                DenseView<double>(out, count, classes()));
    return;
  }
  thread_local Buffer<double> tile;
  tile.resize(static_cast<std::size_t>(nodes() * tile_rows));
  for_tiles(count, [&](Index first, Index number) {
    load(DenseView<const double>(A + first * nodes(), number, nodes()), tile.data(), in_order);
    solve_up(factor_.up, tile.data());
    save_classes(tile.data(), DenseView<double>(out + first * classes(), number, classes()));
  });
}

void GraphCoupling::diag(double* out) const {
  Buffer<double> tile(static_cast<std::size_t>(nodes() * tile_rows));
  for_tiles(classes(), [&](Index first, Index number) {
    std::fill(tile.begin(), tile.end(), 0.0);
    for (Index r = 0; r < number; ++r)
      tile[static_cast<std::size_t>(place_of_class_[static_cast<std::size_t>(first + r)] * tile_rows + r)] = 1.0;
    solve_down(factor_.down, tile.data());
    std::fill(out + first, out + first + number, 0.0);
    for (Index k = 0; k < nodes(); ++k) {
      const double* const row = tile.data() + k * tile_rows;
      for (Index r = 0; r < number; ++r) out[first + r] += row[r] * row[r];
    }
  });
}

// With A = Q^-1 E^T on all nodes and B = Q^-1 H^T: tr(E G H^T) = tr(E B), its derivative by log ridges is
// -tr(A^T diag(ridges) B).
void GraphCoupling::bilinear_grad(Index count, const double* E, const double* H, double* gradient) const {
  thread_local Buffer<double> left, right;
  left.resize(static_cast<std::size_t>(nodes() * tile_rows));
  right.resize(left.size());
  const auto solve = [&](Index first, Index number, const double* S, Buffer<double>& tile) {
    load_classes(DenseView<const double>(S + first * classes(), number, classes()), tile.data());
    solve_down(factor_.down, tile.data());
    solve_up(factor_.up, tile.data());
  };
  for_tiles(count, [&](Index first, Index number) {
    solve(first, number, E, left);
    solve(first, number, H, right);
    double by_variance = 0.0;
    for (Index r = 0; r < number; ++r) {
      const double* const row = E + (first + r) * classes();
      for (Index c = 0; c < classes(); ++c) {
        const Index place = place_of_class_[static_cast<std::size_t>(c)];
        by_variance += row[c] * right[static_cast<std::size_t>(place * tile_rows + r)];
      }
    }
    double by_ridge = 0.0;
    for (Index k = 0; k < nodes(); ++k) {
      const double ridge = ridges_[static_cast<std::size_t>(k)];
      if (ridge == 0.0) continue;
      const double* const a = left.data() + k * tile_rows;
      const double* const b = right.data() + k * tile_rows;
      double sum = 0.0;
      for (Index r = 0; r < number; ++r) sum += a[r] * b[r];
      by_ridge -= ridge * sum;
    }
    gradient[0] += by_variance;
    gradient[1] += by_ridge;
  });
}

}  // namespace taxolearn
