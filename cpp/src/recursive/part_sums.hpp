// Sums over parts of the covariance that only a few classes add to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "class_factor.hpp"
#include "feature_rows.hpp"

namespace taxolearn {

/// s_k = v_k sum_c R_ck amount_c, so that (R s)_c = sum_m G_cm amount_m.
class PartSums {
 public:
  explicit PartSums(const ClassFactor& factor)
      : factor_(factor),
        values_(static_cast<std::size_t>(factor.parts()), 0.0),
        is_touched_(static_cast<std::size_t>(factor.parts()), 0) {}

  void add(Index c, double amount) {
    factor_.for_path(c, [&](std::int32_t k, double r) { add_to(k, factor_.variance(k) * r * amount); });
  }
  void add(const PartSteps& change, double factor) {
    for (std::size_t e = 0; e < change.parts.size(); ++e) add_to(change.parts[e], factor * change.steps[e]);
  }

  /// (R s)_c.
  double at_class(Index c) const {
    double sum = 0.0;
    factor_.for_path(c, [&](std::int32_t k, double r) { sum += r * values_[static_cast<std::size_t>(k)]; });
    return sum;
  }

  void clear() {
    for (const std::int32_t k : touched_) {
      values_[static_cast<std::size_t>(k)] = 0.0;
      is_touched_[static_cast<std::size_t>(k)] = 0;
    }
    touched_.clear();
  }

  /// What was summed, for this row; starts from zero again.
  PartSteps take(Index row) {
    PartSteps out;
    out.row = row;
    std::sort(touched_.begin(), touched_.end());
    for (const std::int32_t k : touched_) {
      const double value = values_[static_cast<std::size_t>(k)];
      if (value == 0.0) continue;
      out.parts.push_back(k);
      out.steps.push_back(value);
    }
    clear();
    return out;
  }

 private:
  void add_to(std::int32_t k, double value) {
    const auto at = static_cast<std::size_t>(k);
    if (is_touched_[at] == 0) {
      is_touched_[at] = 1;
      touched_.push_back(k);
    }
    values_[at] += value;
  }

  const ClassFactor& factor_;
  std::vector<double> values_;
  std::vector<char> is_touched_;
  std::vector<std::int32_t> touched_;
};

}  // namespace taxolearn
