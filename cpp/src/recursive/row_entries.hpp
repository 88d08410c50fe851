// The entries of one row of the inputs, whatever their type.
#pragma once

#include <cassert>
#include <variant>

#include "taxolearn/data/input.hpp"

namespace taxolearn {

template <class V, class I, class Take>
void for_entries_of(const SparseView<V, I>& X, Index i, const Take& take) {
  for (I k = X.offsets[i]; k < X.offsets[i + 1]; ++k) {
    take(static_cast<Index>(X.columns[k]), static_cast<double>(X.values[k]));
  }
}

template <class V, class Take>
void for_entries_of(const DenseView<V>& X, Index i, const Take& take) {
  for (Index k = 0; k < X.cols; ++k) take(k, static_cast<double>(X.row(i)[k]));
}

template <class Take>
void for_entries_of(const BlockedView&, Index, const Take&) {
  assert(false && "one matrix expected");
}

/// take(feature, value) for the entries of row i.
template <class Take>
void for_entries(const InputView& X, Index i, const Take& take) {
  std::visit([&](const auto& x) { for_entries_of(x, i, take); }, X);
}

}  // namespace taxolearn
