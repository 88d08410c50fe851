// Weights of few classes, next to each other for every feature.
#pragma once

#include "row_entries.hpp"
#include "taxolearn/base/matrix.hpp"

namespace taxolearn {

/// W (features x width), where width is the number of classes rounded up: the rest stays zero.
template <class T>
class ClassWeights {
 public:
  /// X has one feature less, where there is `bias` as the last.
  ClassWeights(const InputView& X, double bias, Index classes);

  static Index width_for(Index classes);
  Index width() const { return width_; }

  /// u (width, aligned) = W^T x_i.
  void scores(Index i, T* u) const;

  /// W += x_i step^T, of a step of this width, aligned.
  void add(Index i, const T* step);

 private:
  template <int B>
  void scores_of(Index i, Index first, T* u) const;
  template <int B>
  void add_to(Index i, Index first, const T* step);

  InputView X_;
  double bias_ = 0.0;
  Index width_ = 0;
  Buffer<T> values_;
};

}  // namespace taxolearn
