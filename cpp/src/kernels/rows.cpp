#include "rows.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base.hpp"
#include "chunk.hpp"
#include "panel.hpp"
#include "taxolearn/base/product.hpp"
#include "taxolearn/base/vector.hpp"

namespace taxolearn {
namespace {

constexpr Index entries_per_block = Index{1} << 18;

// Length scales are taken to lie within these limits; beyond them nothing but 0 and 1 is left of a kernel.
constexpr double smallest_length = 1e-150;
constexpr double largest_length = 1e150;

/// Scaled inputs beyond these limits are brought back before they are squared in T.
template <class T>
constexpr double smallest_input = sizeof(T) == sizeof(float) ? 1e-10 : 1e-100;
template <class T>
constexpr double largest_input = sizeof(T) == sizeof(float) ? 1e15 : 1e140;

/// Below this fraction of |a|^2 + |b|^2 a squared distance has lost too many digits.
template <class T>
constexpr T cancellation = static_cast<T>(sizeof(T) == sizeof(float) ? 1e-3 : 1e-8);

/// Nor has one below this any digits to rely on.
template <class T>
constexpr T underflow = static_cast<T>(1e4) * std::numeric_limits<T>::min();

/// body(column, value) for every entry of a row; duplicates of a sparse row are added up first.
template <class V, class I, class Body>
void for_entries(const SparseView<V, I>& X, Index row, const Body& body) {
  for (I k = X.offsets[row]; k < X.offsets[row + 1];) {
    double value = static_cast<double>(X.values[k]);
    const I column = X.columns[k];
    for (++k; k < X.offsets[row + 1] && X.columns[k] == column; ++k) value += static_cast<double>(X.values[k]);
    body(static_cast<Index>(column), value);
  }
}

template <class V, class Body>
void for_entries(const DenseView<const V>& X, Index row, const Body& body) {
  for (Index d = 0; d < X.cols; ++d) body(d, static_cast<double>(X.row(row)[d]));
}

template <class Body>
void for_entries(const BlockedView&, Index, const Body&) {
  assert(false && "one matrix expected");
}

template <class Body>
void for_entries(const InputView& X, Index row, const Body& body) {
  std::visit([&](const auto& x) { for_entries(x, row, body); }, X);
}

/// body(view) for sparse inputs only.
template <class Body>
void visit_sparse(const InputView& X, const Body& body) {
  const auto dispatch = [&](const auto& x) {
    using View = std::decay_t<decltype(x)>;
    if constexpr (!std::is_same_v<View, DenseView<const float>> && !std::is_same_v<View, DenseView<const double>> &&
                  !std::is_same_v<View, BlockedView>) {
      body(x);
    }
  };
  std::visit(dispatch, X);
}

/// 1 / |x|, without overflow on the way; 0 for a zero row.
double inverse_norm(const InputView& X, Index row) {
  double largest = 0.0;
  for_entries(X, row, [&](Index, double x) { largest = std::max(largest, std::abs(x)); });
  if (!(largest > 0.0)) return 0.0;
  double sum = 0.0;
  for_entries(X, row, [&](Index, double x) { sum += (x / largest) * (x / largest); });
  return 1.0 / largest / std::sqrt(sum);
}

/// Smallest and largest value and sum of every column of dense rows.
struct ColumnRanges {
  Buffer<double> low, high, sum;

  explicit ColumnRanges(Index features)
      : low(static_cast<std::size_t>(features), std::numeric_limits<double>::infinity()),
        high(static_cast<std::size_t>(features), -std::numeric_limits<double>::infinity()),
        sum(static_cast<std::size_t>(features), 0.0) {}

  void merge(const double* low_, const double* high_, const double* sum_) {
    for (std::size_t d = 0; d < sum.size(); ++d) {
      low[d] = std::min(low[d], low_[d]);
      high[d] = std::max(high[d], high_[d]);
      sum[d] += sum_[d];
    }
  }
};

Blocks row_blocks(const InputRows& rows) {
  return Blocks(rows.count(), std::max<Index>(entries_per_block / std::max<Index>(input_features(rows.X), 1), 16));
}

template <class V>
void add_row(const V* x, ColumnRanges& ranges) {
  double* const low = ranges.low.data();
  double* const high = ranges.high.data();
  double* const sum = ranges.sum.data();
#pragma omp simd
  for (std::size_t d = 0; d < ranges.sum.size(); ++d) {
    const double value = static_cast<double>(x[d]);
    low[d] = value < low[d] ? value : low[d];
    high[d] = value > high[d] ? value : high[d];
    sum[d] += value;
  }
}

ColumnRanges column_ranges(const InputRows& rows, const Execution& execution) {
  const Blocks blocks = row_blocks(rows);
  const Index features = input_features(rows.X);
  std::vector<ColumnRanges> parts(static_cast<std::size_t>(blocks.number()), ColumnRanges(features));
  parallel_for(blocks.number(), execution, [&](Index block) {
    ColumnRanges& part = parts[static_cast<std::size_t>(block)];
    for (Index i = blocks.first(block); i < blocks.first(block) + blocks.length(block); ++i) {
      if (const auto* single = std::get_if<DenseView<const float>>(&rows.X)) {
        add_row(single->row(rows.source(i)), part);
      } else {
        add_row(std::get<DenseView<const double>>(rows.X).row(rows.source(i)), part);
      }
    }
  });
  ColumnRanges all(features);
  for (const ColumnRanges& part : parts) all.merge(part.low.data(), part.high.data(), part.sum.data());
  return all;
}

/// Two rows side by side: body(feature, x_d - y_d) where one of them has an entry.
template <class Body>
void for_differences(const InputRows& left, Index i, const InputRows& right, Index j, const Body& body) {
  using Entries = std::vector<std::pair<Index, double>>;
  static thread_local Entries x, y;
  const auto unpack = [](const InputRows& rows, Index k, Entries& out) {
    out.clear();
    for_entries(rows.X, rows.source(k), [&](Index d, double value) { out.emplace_back(d, value); });
    out.emplace_back(std::numeric_limits<Index>::max(), 0.0);
  };
  unpack(left, i, x);
  unpack(right, j, y);
  for (std::size_t a = 0, b = 0; a + 1 < x.size() || b + 1 < y.size();) {
    const Index d = std::min(x[a].first, y[b].first);
    double difference = 0.0;
    if (x[a].first == d) difference += x[a++].second;
    if (y[b].first == d) difference -= y[b++].second;
    body(d, difference);
  }
}

}  // namespace

void require_rows(const char* name, const InputRows& rows) {
  require(input_blocks(rows.X) == nullptr, "the ", name,
          " rows are in blocks, expected one matrix; use a kernel for every block");
  const Index n = input_rows(rows.X);
  for (const Index i : rows.selected) {
    require(i >= 0 && i < n, name, " rows contain ", i, ", expected indices in [0, ", n, ")");
  }
}

void require_length_scales(const std::vector<double>& length_scales, Index features) {
  const Index count = static_cast<Index>(length_scales.size());
  require(count == 1 || count == features, "length_scales has ", count, " elements, but the rows have ", features,
          " features; expected one length scale, or one per feature");
}

bool has_direction(const InputRows& rows, Index i) { return inverse_norm(rows.X, rows.source(i)) > 0.0; }

template <class T>
template <class Body>
void KernelRows<T>::for_scaled(const Side& side, Index i, const Body& body) const {
  if (!side.sparse) {
    const T* const z = side.copy.data() + i * features();
    for (Index d = 0; d < features(); ++d) body(d, z[d]);
    return;
  }
  const double factor = side.factors.empty() ? 1.0 : side.factors[static_cast<std::size_t>(i)];
  for_entries(side.rows.X, side.rows.source(i),
              [&](Index d, double x) { body(d, static_cast<T>(x * weights_[static_cast<std::size_t>(d)] * factor)); });
}

// ---- Preparation
// ------------------------------------------------------------------------------------------------------

template <class T>
KernelRows<T>::KernelRows(const InputRows& left, const InputRows& right, const RowTransform& transform,
                          const Execution& execution)
    : same_(&left == &right) {
  const Index features = input_features(right.X);
  require(input_features(left.X) == features, "the left rows have ", input_features(left.X), " features, expected ",
          features, " as in the right rows");
  require_rows("left", left);
  require_rows("right", right);
  if (!transform.length_scales.empty()) require_length_scales(transform.length_scales, features);
  left_.rows = left;
  if (!same_) right_.rows = right;
  left_.sparse = is_sparse(left.X);
  right_.sparse = is_sparse(right.X);
  inverse_lengths_.assign(static_cast<std::size_t>(features), 1.0);
  for (std::size_t d = 0; d < transform.length_scales.size(); ++d) {
    const double inverse = 1.0 / std::clamp(transform.length_scales[d], smallest_length, largest_length);
    if (transform.length_scales.size() == 1) inverse_lengths_.assign(inverse_lengths_.size(), inverse);
    if (transform.length_scales.size() > 1) inverse_lengths_[d] = inverse;
  }
  centre_.assign(static_cast<std::size_t>(features), 0.0);
  weights_ = inverse_lengths_;
  if (transform.translate) choose_scale(execution);
  prepare(left_, transform, execution);
  if (!same_) prepare(right_, transform, execution);
}

template <class T>
void KernelRows<T>::choose_scale(const Execution& execution) {
  double largest = 0.0;
  if (!left_.sparse && !right_.sparse) {
    ColumnRanges ranges = column_ranges(right().rows, execution);
    const double count = static_cast<double>(std::max<Index>(right().rows.count(), 1));
    for (std::size_t d = 0; d < centre_.size(); ++d) {
      // A constant feature leaves nothing, whatever its length scale.
      centre_[d] = ranges.low[d] < ranges.high[d] ? ranges.sum[d] / count : ranges.low[d];
      if (!std::isfinite(centre_[d])) centre_[d] = 0.0;
    }
    if (!same_) {
      const ColumnRanges others = column_ranges(left().rows, execution);
      ranges.merge(others.low.data(), others.high.data(), others.sum.data());
    }
    for (std::size_t d = 0; d < centre_.size() && (left().rows.count() > 0 || right().rows.count() > 0); ++d) {
      const double range = std::max(std::abs(ranges.low[d] - centre_[d]), std::abs(ranges.high[d] - centre_[d]));
      largest = std::max(largest, range * inverse_lengths_[d]);
    }
  } else {
    const auto look = [&](const Side& side) {
      for (Index i = 0; i < side.rows.count(); ++i) {
        for_entries(side.rows.X, side.rows.source(i), [&](Index d, double x) {
          largest = std::max(largest, std::abs(x) * inverse_lengths_[static_cast<std::size_t>(d)]);
        });
      }
    };
    look(left());
    if (!same_) look(right());
  }
  constant_ = largest == 0.0;
  if (constant_) return;
  if (largest > largest_input<T>) scale_ = largest_input<T> / largest;
  if (largest < smallest_input<T>) scale_ = 1.0 / std::max(largest, 1e-300);
  for (double& weight : weights_) weight *= scale_;
  unscale_ = std::min(1.0 / (scale_ * scale_), std::numeric_limits<double>::max());
}

template <class T>
void KernelRows<T>::prepare(Side& side, const RowTransform& transform, const Execution& execution) {
  const InputRows& rows = side.rows;
  const Index features = this->features();
  side.norms.assign(static_cast<std::size_t>(rows.count() + Chunk<T>::SizeAtCompileTime), T(0));
  if (transform.normalize) side.factors.resize(static_cast<std::size_t>(rows.count()));
  if (!side.sparse) side.copy.resize(static_cast<std::size_t>(rows.count() * features));
  const Blocks blocks = row_blocks(rows);
  parallel_for(blocks.number(), execution, [&](Index block) {
    for (Index i = blocks.first(block); i < blocks.first(block) + blocks.length(block); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (transform.normalize) side.factors[at] = inverse_norm(rows.X, rows.source(i));
      const double factor = transform.normalize ? side.factors[at] : 1.0;
      double norm = 0.0;
      if (side.sparse) {
        for_scaled(side, i, [&](Index, T z) { norm += static_cast<double>(z) * static_cast<double>(z); });
      } else {
        T* const z = side.copy.data() + i * features;
        const double* const centre = centre_.data();
        const double* const weight = weights_.data();
        for_entries(rows.X, rows.source(i),
                    [&](Index d, double x) { z[d] = static_cast<T>((x - centre[d]) * weight[d] * factor); });
        norm = dot_block(z, z, features);
      }
      side.norms[at] = static_cast<T>(norm);
    }
  });
}

// ---- Inner products and distances
// -------------------------------------------------------------------------------------

template <class T>
void KernelRows<T>::inner_products(Index i, Index j, DenseView<T> out) const {
  const Index d = features();
  if (left().sparse) {
    sparse_inner_products(left(), i, out.rows, right(), j, out.cols, out, false);
  } else if (right().sparse) {
    sparse_inner_products(right(), j, out.cols, left(), i, out.rows, out, true);
  } else {
    set_product(Product::ABt, DenseView<const T>(left().copy.data() + i * d, out.rows, d),
                DenseView<const T>(right().copy.data() + j * d, out.cols, d), out);
  }
}

template <class T>
void KernelRows<T>::fill(Panel& panel, const Side& side, Index first, Index count) const {
  Index entries = count * features();
  visit_sparse(side.rows.X, [&](const auto& X) {
    entries = 0;
    for (Index b = first; b < first + count; ++b) {
      entries += static_cast<Index>(X.offsets[side.rows.source(b) + 1] - X.offsets[side.rows.source(b)]);
    }
  });
  panel.open(features(), entries);
  for (Index b = 0; b < count; ++b) {
    for_scaled(side, first + b, [&](Index d, T z) { panel.set(d, b, z); });
  }
}

/// out (or its transpose) = rows of the sparse side `from` times rows of the other.
template <class T>
void KernelRows<T>::sparse_inner_products(const Side& from, Index i, Index rows, const Side& other, Index j,
                                          Index columns, DenseView<T> out, bool transposed) const {
  auto& panel = Panel::mine();
  for (Index first = 0; first < columns; first += Panel::width) {
    const Index count = std::min(columns - first, Panel::width);
    fill(panel, other, j + first, count);
    visit_sparse(from.rows.X, [&](const auto& X) {
      for (Index a = 0; a < rows; ++a) {
        const Index source = from.rows.source(i + a);
        const double factor = from.factors.empty() ? 1.0 : from.factors[static_cast<std::size_t>(i + a)];
        Chunk<T> even = Chunk<T>::Zero(), odd = Chunk<T>::Zero();
        const auto scaled = [&](auto k) {
          return static_cast<T>(static_cast<double>(X.values[k]) * weights_[static_cast<std::size_t>(X.columns[k])] *
                                factor);
        };
        const auto line = [&](auto k) {
          return Eigen::Map<const Chunk<T>, Eigen::Aligned64>(panel.feature(static_cast<Index>(X.columns[k])));
        };
        auto k = X.offsets[source];
        const auto end = X.offsets[source + 1];
        for (; k + 1 < end; k += 2) {
          even += scaled(k) * line(k);
          odd += scaled(k + 1) * line(k + 1);
        }
        if (k < end) even += scaled(k) * line(k);
        even += odd;
        if (transposed) {
          for (Index b = 0; b < count; ++b) out.row(first + b)[a] = even[b];
        } else {
          std::copy(even.data(), even.data() + count, out.row(a) + first);
        }
      }
    });
    panel.clear();
  }
}

template <class T>
bool KernelRows<T>::to_squared_distances(Index i, Index j, T* row, Index count) const {
  if (constant_) {
    std::fill(row, row + count, T(0));
    return false;
  }
  const T norm = left().norms[static_cast<std::size_t>(i)];
  const T* const norms = right().norms.data() + j;
  Chunk<T> margins = Chunk<T>::Constant(T(1));
  map_chunks(row, count, [&](Chunk<T>& chunk, Index k) {
    const Chunk<T> sums = norm + Eigen::Map<const Chunk<T>>(norms + k);
    chunk = sums - T(2) * chunk;
    margins = margins.min(chunk - (cancellation<T> * sums + underflow<T>));
  });
  const bool any_close = !(margins.minCoeff() > T(0));
  const T recompute = T(-1);
  if (any_close) {
    for (Index b = 0; b < count; ++b) {
      if (row[b] <= cancellation<T> * (norm + norms[b]) + underflow<T>) row[b] = recompute;
    }
  }
  if (scale_ != 1.0) {
    const T unscale = static_cast<T>(std::min(unscale_, static_cast<double>(std::numeric_limits<T>::max())));
    map_chunks(row, count, [&](Chunk<T>& chunk, Index) { chunk = (chunk * unscale).min(farthest()); });
  }
  if (any_close) {
    for (Index b = 0; b < count; ++b) {
      if (row[b] < T(0)) row[b] = same_ && i == j + b ? T(0) : direct_squared_distance(i, j + b);
    }
  }
  return any_close;
}

template <class T>
T KernelRows<T>::direct_squared_distance(Index i, Index j) const {
  double sum = 0.0;
  for_differences(left().rows, i, right().rows, j, [&](Index d, double difference) {
    const double scaled = difference * inverse_lengths_[static_cast<std::size_t>(d)];
    sum += scaled * scaled;
  });
  return static_cast<T>(std::min(sum, static_cast<double>(farthest())));
}

template <class T>
bool KernelRows<T>::close(Index i, Index j, double squared_distance) const {
  const double sum = static_cast<double>(left().norms[static_cast<std::size_t>(i)]) +
                     static_cast<double>(right().norms[static_cast<std::size_t>(j)]);
  return squared_distance * scale_ * scale_ <= 2.0 * (static_cast<double>(cancellation<T>) * sum + underflow<T>);
}

// ---- Derivatives by length scales
// -------------------------------------------------------------------------------------

template <class T>
void KernelRows<T>::add_squared_differences(Index i, Index j, double weight, double* out) const {
  for_differences(left().rows, i, right().rows, j, [&](Index d, double difference) {
    const double scaled = difference * inverse_lengths_[static_cast<std::size_t>(d)];
    out[d] += weight * std::min(scaled * scaled, KernelRows<double>::farthest());
  });
}

template <class T>
void KernelRows<T>::add_feature_sums(Index i, Index j, DenseView<const double> H, double* out) const {
  // sum_ab H_ab (z_a - z_b)^2 = sum_a z_a (row sum_a z_a - 2 (H Z)_a) + sum_b column sum_b z_b^2, feature by feature
  const Index d = features();
  std::vector<double> row_sums, column_sums(static_cast<std::size_t>(H.cols), 0.0);
  for (Index a = 0; a < H.rows; ++a) {
    row_sums.push_back(std::accumulate(H.row(a), H.row(a) + H.cols, 0.0));
    axpy_block(1.0, H.row(a), column_sums.data(), H.cols);
  }
  Scratch<double> total(1, d);
  double* const sums = total.row(0);
  std::fill(sums, sums + d, 0.0);
  const auto add_squares = [&](const Side& side, Index first, const std::vector<double>& weights) {
    for (const double weight : weights) {
      for_scaled(side, first++,
                 [&](Index k, T z) { sums[k] += weight * static_cast<double>(z) * static_cast<double>(z); });
    }
  };
  add_squares(left(), i, row_sums);
  add_squares(right(), j, column_sums);
  if (left().sparse) {
    add_sparse_sums(left(), i, right(), j, H, false, sums);
  } else if (right().sparse) {
    add_sparse_sums(right(), j, left(), i, H, true, sums);
  } else {
    Scratch<double> right_rows(H.cols, d), product(H.rows, d);
    convert_block(right().copy.data() + j * d, right_rows.row(0), H.cols * d);
    set_product(Product::AB, H, right_rows.view(), product.view());
    for (Index a = 0; a < H.rows; ++a) {
      const T* const z = left().copy.data() + (i + a) * d;
      const double* const hz = product.row(a);
      for (Index k = 0; k < d; ++k) sums[k] -= 2.0 * static_cast<double>(z[k]) * hz[k];
    }
  }
  for (Index k = 0; k < d; ++k) out[k] += unscale_ * sums[k];
}

/// sums[d] -= 2 sum_ab H[a, b] z_ad z_bd, with the rows a of the sparse side `from`; H comes transposed if these are
/// the right rows.
template <class T>
void KernelRows<T>::add_sparse_sums(const Side& from, Index i, const Side& other, Index j, DenseView<const double> H,
                                    bool transposed, double* sums) const {
  const Index rows = transposed ? H.cols : H.rows;
  const Index columns = transposed ? H.rows : H.cols;
  auto& panel = Panel::mine();
  for (Index first = 0; first < columns; first += Panel::width) {
    const Index count = std::min(columns - first, Panel::width);
    fill(panel, other, j + first, count);
    std::array<double, Panel::width> weights;
    for (Index a = 0; a < rows; ++a) {
      weights.fill(0.0);
      for (Index b = 0; b < count; ++b)
        weights[static_cast<std::size_t>(b)] = transposed ? H.row(first + b)[a] : H.row(a)[first + b];
      for_scaled(from, i + a, [&](Index d, T z) {
        sums[d] -= 2.0 * static_cast<double>(z) * dot_block(weights.data(), panel.feature(d), Panel::width);
      });
    }
    panel.clear();
  }
}

template class KernelRows<float>;
template class KernelRows<double>;

}  // namespace taxolearn
