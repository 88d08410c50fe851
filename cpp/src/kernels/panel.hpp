// A few rows, feature by feature, with which sparse rows have their inner products computed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "chunk.hpp"

namespace taxolearn {

/// Line slot[d] holds feature d of up to `width` rows; line 0 stands for all features they do not have. So the memory
/// follows the entries of these rows, not the number of features.
template <class T>
class FeaturePanel {
 public:
  static constexpr Index width = Chunk<T>::SizeAtCompileTime;

  /// Of this thread, empty between uses.
  static FeaturePanel& mine() {
    static thread_local FeaturePanel panel;
    return panel;
  }

  /// Makes room for rows with so many features and at most so many entries in all.
  void open(Index features, Index entries) {
    if (slots_.size() < static_cast<std::size_t>(features)) slots_.resize(static_cast<std::size_t>(features), 0);
    const auto needed = static_cast<std::size_t>((std::min(features, entries) + 1) * width);
    if (lines_.size() < needed) {
      lines_ = Buffer<T>();
      lines_.resize(needed);
    }
    line(0).setZero();
  }

  /// Feature d of row b, once.
  void set(Index d, Index b, T value) {
    std::int32_t& slot = slots_[static_cast<std::size_t>(d)];
    if (slot == 0) {
      touched_.push_back(d);
      slot = static_cast<std::int32_t>(touched_.size());
      line(slot).setZero();
    }
    lines_[static_cast<std::size_t>(slot * width + b)] = value;
  }

  void clear() {
    for (const Index d : touched_) slots_[static_cast<std::size_t>(d)] = 0;
    touched_.clear();
  }

  const T* feature(Index d) const { return lines_.data() + slots_[static_cast<std::size_t>(d)] * width; }

 private:
  auto line(Index slot) { return Eigen::Map<Chunk<T>, Eigen::Aligned64>(lines_.data() + slot * width); }

  std::vector<std::int32_t> slots_;
  std::vector<Index> touched_;
  Buffer<T> lines_;
};

}  // namespace taxolearn
