// A matrix of features and parts of which most elements are zero, that grows as it is added to.
#pragma once

#include <cstdint>
#include <vector>

#include "row_entries.hpp"
#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"

namespace taxolearn {

/// What one row of the inputs adds: the outer product of the row and these.
struct PartSteps {
  Index row = 0;
  std::vector<std::int32_t> parts;  ///< ascending
  std::vector<double> steps;
};

/// D (features x parts). Where it is small, or not much larger than X, it is stored as it is. Else a feature keeps the
/// parts where it is not zero, or all of them once these are many: most features of a text are rare and have few, and the
/// frequent ones are read at the speed of a dense product.
template <class T>
class FeatureRows {
 public:
  /// X has one feature less, where there is `bias` as the last.
  FeatureRows(const InputView& X, double bias, Index parts);

  /// z (width, aligned) = D^T x_i.
  void product(Index i, T* z) const;

  /// z[e] = (D^T x_i)[parts[e]], of ascending parts.
  void product_at(Index i, const std::vector<std::int32_t>& parts, T* z) const;

  /// D += sum of x_i steps^T, in their order; the same for any number of threads.
  void add(const std::vector<PartSteps>& changes, const Execution& execution);

  void clear();

  /// take(part, value) for the elements of a feature that may differ from zero, in ascending order.
  template <class Take>
  void for_parts(Index feature, const Take& take) const {
    if (width_ > 0) {
      const T* const own = all_.data() + feature * width_;
      for (Index k = 0; k < parts_; ++k) take(static_cast<std::int32_t>(k), own[k]);
      return;
    }
    const Row& row = rows_[static_cast<std::size_t>(feature)];
    for (std::size_t e = 0; e < row.values.size(); ++e) {
      take(row.is_dense ? static_cast<std::int32_t>(e) : row.parts[e], row.values[e]);
    }
  }
  Index features() const { return input_features(X_) + 1; }

  /// Elements of z, which may be more than there are parts.
  Index width() const { return width_ > 0 ? width_ : parts_; }

 private:
  struct Row {
    bool is_dense = false;
    std::vector<std::int32_t> parts;
    std::vector<T> values;
  };

  template <int W>
  void product_of(Index i, Index first, T* z) const;
  template <int W>
  void add_chunk(Index i, Index first, const T* steps);
  void add_outer(const PartSteps& change);
  void add_to(const Row& row, double value, T* z) const;
  void add_row(const PartSteps& change, double value, Row& row) const;
  void insert(const PartSteps& change, double value, std::size_t missing, Row& row) const;

  InputView X_;
  double bias_ = 0.0;
  Index parts_ = 0;
  Index width_ = 0;  ///< parts rounded up, where all is stored
  Buffer<T> all_;    ///< features x width
  std::vector<Row> rows_;
};

}  // namespace taxolearn
