// Two lists of rows prepared for the inner products and squared distances of a covariance function.
//
// Row x becomes z = s (x - c) / l, with length scales l, for stationary kernels the mean c of the right rows (distances
// do not change, cancellation does), and a factor s that keeps squares within the range of T. Dense rows are copied in
// precision T. Sparse ones stay where they are, are not shifted, and are scaled on the way: a few rows of one side are
// scattered into a panel (features of these rows x rows), which the rows of the other side are multiplied with.
#pragma once

#include <vector>

#include "taxolearn/kernels/kernel.hpp"

namespace taxolearn {

struct RowTransform {
  std::vector<double> length_scales;  ///< none, one for all features, or one per feature
  bool translate = false;             ///< only differences of rows will be asked for
  bool normalize = false;             ///< rows are divided by their norm; zero rows stay zero
};

/// Throws InvalidArgument unless the selected rows exist.
void require_rows(const char* name, const InputRows& rows);

/// Throws InvalidArgument unless there is one length scale or one per feature.
void require_length_scales(const std::vector<double>& length_scales, Index features);

/// Whether row i differs from zero.
bool has_direction(const InputRows& rows, Index i);

template <class T>
class FeaturePanel;

template <class T>
class KernelRows {
 public:
  /// Throws InvalidArgument if the two sides do not fit each other or the length scales.
  KernelRows(const InputRows& left, const InputRows& right, const RowTransform& transform, const Execution& execution);

  Index features() const { return static_cast<Index>(weights_.size()); }

  /// Squared distances are at most this: products of a kernel, zero by then, with them stay finite.
  static constexpr T farthest() { return static_cast<T>(sizeof(T) == sizeof(float) ? 1e30 : 1e300); }

  /// Whether left and right were the same object.
  bool same() const { return same_; }

  /// out[a, b] = z_a . z_b, for left rows from i and right rows from j.
  void inner_products(Index i, Index j, DenseView<T> out) const;

  /// Turns inner products of left row i with `count` right rows from j into squared distances, finite and never
  /// negative. Where the two squared norms nearly cancel, the distance is computed anew from the inputs, so duplicates
  /// are at distance 0. Returns whether there was such a row.
  bool to_squared_distances(Index i, Index j, T* row, Index count) const;

  /// Whether the distance of two rows is small against their norms, so that differences lose digits by cancellation.
  bool close(Index i, Index j, double squared_distance) const;

  /// out[d] += weight (x_id - x_jd)^2 / l_d^2, from the inputs.
  void add_squared_differences(Index i, Index j, double weight, double* out) const;

  /// out[d] += sum_ab H[a, b] (x_ad - x_bd)^2 / l_d^2, for left rows from i and right rows from j.
  void add_feature_sums(Index i, Index j, DenseView<const double> H, double* out) const;

 private:
  struct Side {
    InputRows rows;
    bool sparse = false;
    Buffer<T> copy;               ///< dense rows only: z, count x features
    Buffer<T> norms;              ///< |z|^2, padded to whole chunks
    std::vector<double> factors;  ///< 1 / |x|, if rows are normalised
  };
  using Panel = FeaturePanel<T>;

  const Side& left() const { return left_; }
  const Side& right() const { return same_ ? left_ : right_; }
  void choose_scale(const Execution& execution);
  void prepare(Side& side, const RowTransform& transform, const Execution& execution);
  template <class Body>
  void for_scaled(const Side& side, Index i, const Body& body) const;  ///< body(feature, z) for the entries of row i
  void fill(Panel& panel, const Side& side, Index first, Index count) const;
  void sparse_inner_products(const Side& from, Index i, Index rows, const Side& other, Index j, Index columns,
                             DenseView<T> out, bool transposed) const;
  void add_sparse_sums(const Side& from, Index i, const Side& other, Index j, DenseView<const double> H,
                       bool transposed, double* sums) const;
  T direct_squared_distance(Index i, Index j) const;

  bool same_;
  bool constant_ = false;  ///< no two rows differ
  Side left_;
  Side right_;                           ///< has no rows if the sides are the same
  std::vector<double> inverse_lengths_;  ///< 1 / l_d
  std::vector<double> centre_;           ///< c_d
  std::vector<double> weights_;          ///< s / l_d
  double scale_ = 1.0;                   ///< s
  double unscale_ = 1.0;                 ///< 1 / s^2, but finite
};

}  // namespace taxolearn
