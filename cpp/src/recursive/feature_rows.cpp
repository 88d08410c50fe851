#include "feature_rows.hpp"

#include <Eigen/Core>
#include <algorithm>

namespace taxolearn {
namespace {

constexpr Index dense_from = 4;  // of so many parts one is not zero: then all are kept

constexpr Index small = Index(1) << 24;  // elements that are stored as they are
constexpr Index per_entry = 8;           // or so many for every entry of X
constexpr Index chunk = 16;

}  // namespace

template <class T>
FeatureRows<T>::FeatureRows(const InputView& X, double bias, Index parts) : X_(X), bias_(bias), parts_(parts) {
  const Index width = (parts + chunk - 1) / chunk * chunk;
  if (width * features() <= std::max(small, per_entry * input_entries(X))) width_ = width;
  clear();
}

template <class T>
template <int W>
void FeatureRows<T>::product_of(Index i, Index first, T* z) const {
  using Lanes = Eigen::Array<T, W, 1>;
  using Map = Eigen::Map<const Lanes, Eigen::Aligned32>;
  const T* const from = all_.data() + first;
  Lanes sum = Lanes::Zero();
  for_entries(X_, i, [&](Index f, double value) { sum += static_cast<T>(value) * Map(from + f * width_); });
  if (bias_ != 0.0) sum += static_cast<T>(bias_) * Map(from + (features() - 1) * width_);
  Eigen::Map<Lanes, Eigen::Aligned32>(z + first) = sum;
}

template <class T>
void FeatureRows<T>::add_to(const Row& row, double value, T* z) const {
  const T factor = static_cast<T>(value);
  const T* const values = row.values.data();
  if (row.is_dense) {
#pragma omp simd
    for (Index k = 0; k < parts_; ++k) z[k] += factor * values[k];
  } else {
    const std::int32_t* const parts = row.parts.data();
    for (std::size_t e = 0; e < row.values.size(); ++e) z[parts[e]] += factor * values[e];
  }
}

template <class T>
void FeatureRows<T>::product(Index i, T* z) const {
  if (width_ > 0) {
    Index first = 0;
    for (; first + 8 * chunk <= width_; first += 8 * chunk) product_of<8 * chunk>(i, first, z);
    for (; first + 2 * chunk <= width_; first += 2 * chunk) product_of<2 * chunk>(i, first, z);
    for (; first < width_; first += chunk) product_of<chunk>(i, first, z);
    return;
  }
  std::fill(z, z + parts_, T(0));
  for_entries(X_, i, [&](Index feature, double value) { add_to(rows_[static_cast<std::size_t>(feature)], value, z); });
  if (bias_ != 0.0) add_to(rows_.back(), bias_, z);
}

template <class T>
void FeatureRows<T>::product_at(Index i, const std::vector<std::int32_t>& parts, T* z) const {
  const std::size_t count = parts.size();
  const std::int32_t* const part = parts.data();
  std::fill(z, z + count, T(0));
  const auto add = [&](Index feature, double value) {
    const T factor = static_cast<T>(value);
    const Row* const row = width_ > 0 ? nullptr : &rows_[static_cast<std::size_t>(feature)];
    if (row == nullptr || row->is_dense) {
      const T* const values = row == nullptr ? all_.data() + feature * width_ : row->values.data();
#pragma omp simd
      for (std::size_t e = 0; e < count; ++e) z[e] += factor * values[part[e]];
      return;
    }
    auto at = row->parts.begin();
    for (std::size_t e = 0; e < count && at != row->parts.end(); ++e) {
      at = std::lower_bound(at, row->parts.end(), part[e]);
      if (at != row->parts.end() && *at == part[e]) {
        z[e] += factor * row->values[static_cast<std::size_t>(at - row->parts.begin())];
      }
    }
  };
  for_entries(X_, i, add);
  if (bias_ != 0.0) add(features() - 1, bias_);
}

template <class T>
void FeatureRows<T>::insert(const PartSteps& change, double value, std::size_t missing, Row& row) const {
  const std::size_t before = row.values.size(), after = before + missing;
  if (static_cast<Index>(after) * dense_from > parts_) {
    std::vector<T> all(static_cast<std::size_t>(parts_), T(0));
    for (std::size_t e = 0; e < before; ++e) all[static_cast<std::size_t>(row.parts[e])] = row.values[e];
    row.is_dense = true;
    row.values = std::move(all);
    row.parts = {};
    add_row(change, value, row);
    return;
  }
  row.parts.resize(after);
  row.values.resize(after);
  // From the last to the first, so that nothing is overwritten that is still to be moved.
  std::size_t from = before, to = after, s = change.parts.size();
  while (s > 0) {
    const std::int32_t part = change.parts[s - 1];
    const T step = static_cast<T>(value * change.steps[s - 1]);
    --to;
    if (from > 0 && row.parts[from - 1] > part) {
      --from;
      row.parts[to] = row.parts[from];
      row.values[to] = row.values[from];
      continue;
    }
    const bool is_known = from > 0 && row.parts[from - 1] == part;
    row.values[to] = is_known ? row.values[from - 1] + step : step;
    row.parts[to] = part;
    if (is_known) --from;
    --s;
  }
}

template <class T>
void FeatureRows<T>::add_row(const PartSteps& change, double value, Row& row) const {
  if (row.is_dense) {
    for (std::size_t s = 0; s < change.parts.size(); ++s) {
      row.values[static_cast<std::size_t>(change.parts[s])] += static_cast<T>(value * change.steps[s]);
    }
    return;
  }
  std::size_t missing = 0;
  auto at = row.parts.begin();
  for (const std::int32_t part : change.parts) {
    at = std::lower_bound(at, row.parts.end(), part);
    missing += at == row.parts.end() || *at != part ? 1 : 0;
  }
  if (missing > 0) return insert(change, value, missing, row);
  at = row.parts.begin();
  for (std::size_t s = 0; s < change.parts.size(); ++s) {
    at = std::lower_bound(at, row.parts.end(), change.parts[s]);
    row.values[static_cast<std::size_t>(at - row.parts.begin())] += static_cast<T>(value * change.steps[s]);
  }
}

template <class T>
template <int W>
void FeatureRows<T>::add_chunk(Index i, Index first, const T* steps) {
  using Lanes = Eigen::Array<T, W, 1>;
  using Map = Eigen::Map<Lanes, Eigen::Aligned32>;
  T* const to = all_.data() + first;
  const Lanes own = Eigen::Map<const Lanes, Eigen::Aligned32>(steps + first);
  if ((own == T(0)).all()) return;
  for_entries(X_, i, [&](Index f, double value) { Map(to + f * width_) += static_cast<T>(value) * own; });
  if (bias_ != 0.0) Map(to + (features() - 1) * width_) += static_cast<T>(bias_) * own;
}

template <class T>
void FeatureRows<T>::add_outer(const PartSteps& change) {
  thread_local Buffer<T> steps;
  steps.assign(static_cast<std::size_t>(width_), T(0));
  for (std::size_t s = 0; s < change.parts.size(); ++s) {
    steps[static_cast<std::size_t>(change.parts[s])] = static_cast<T>(change.steps[s]);
  }
  Index at = 0;
  for (; at + 2 * chunk <= width_; at += 2 * chunk) add_chunk<2 * chunk>(change.row, at, steps.data());
  for (; at < width_; at += chunk) add_chunk<chunk>(change.row, at, steps.data());
}

template <class T>
void FeatureRows<T>::add(const std::vector<PartSteps>& changes, const Execution& execution) {
  // A thread has features of its own, and adds to each in the order of the changes.
  if (width_ > 0) {
    for (const PartSteps& change : changes) {
      if (!change.parts.empty()) add_outer(change);
    }
    return;
  }
  const Index threads = std::max<Index>(execution.threads, 1);
  parallel_for(threads, execution, [&](Index own) {
    for (const PartSteps& change : changes) {
      const auto add = [&](Index feature, double value) {
        if (feature % threads == own) add_row(change, value, rows_[static_cast<std::size_t>(feature)]);
      };
      if (change.parts.empty()) continue;
      for_entries(X_, change.row, add);
      if (bias_ != 0.0) add(features() - 1, bias_);
    }
  });
}

template <class T>
void FeatureRows<T>::clear() {
  if (width_ > 0) {
    all_.assign(static_cast<std::size_t>(features() * width_), T(0));
  } else {
    rows_.assign(static_cast<std::size_t>(features()), {});
  }
}

template class FeatureRows<float>;
template class FeatureRows<double>;

}  // namespace taxolearn
