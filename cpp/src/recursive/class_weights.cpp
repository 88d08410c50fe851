#include "class_weights.hpp"

#include <Eigen/Core>
#include <type_traits>

namespace taxolearn {
namespace {

constexpr int narrowest = 8;

/// body(first, width as a constant) for pieces of a range that is a multiple of the narrowest.
template <class Body>
void in_pieces(Index width, const Body& body) {
  Index first = 0;
  for (; first + 4 * narrowest <= width; first += 4 * narrowest) {
    body(first, std::integral_constant<int, 4 * narrowest>{});
  }
  for (; first + 2 * narrowest <= width; first += 2 * narrowest) {
    body(first, std::integral_constant<int, 2 * narrowest>{});
  }
  for (; first < width; first += narrowest) body(first, std::integral_constant<int, narrowest>{});
}

}  // namespace

template <class T>
ClassWeights<T>::ClassWeights(const InputView& X, double bias, Index classes)
    : X_(X),
      bias_(bias),
      width_(width_for(classes)),
      values_(static_cast<std::size_t>((input_features(X) + 1) * width_), T(0)) {}

template <class T>
Index ClassWeights<T>::width_for(Index classes) {
  return (classes + narrowest - 1) / narrowest * narrowest;
}

template <class T>
template <int B>
void ClassWeights<T>::scores_of(Index i, Index first, T* u) const {
  using Lanes = Eigen::Array<T, B, 1>;
  using Map = Eigen::Map<const Lanes, Eigen::Aligned32>;
  const T* const from = values_.data() + first;
  const Index width = width_;
  Lanes sum = Lanes::Zero();
  for_entries(X_, i, [&](Index f, double value) { sum += static_cast<T>(value) * Map(from + f * width); });
  if (bias_ != 0.0) sum += static_cast<T>(bias_) * Map(from + input_features(X_) * width);
  Eigen::Map<Lanes, Eigen::Aligned32>(u + first) = sum;
}

template <class T>
void ClassWeights<T>::scores(Index i, T* u) const {
  in_pieces(width_, [&](Index first, auto piece) { scores_of<piece()>(i, first, u); });
}

template <class T>
template <int B>
void ClassWeights<T>::add_to(Index i, Index first, const T* step) {
  using Lanes = Eigen::Array<T, B, 1>;
  using Map = Eigen::Map<Lanes, Eigen::Aligned32>;
  const Lanes own = Eigen::Map<const Lanes, Eigen::Aligned32>(step + first);
  if ((own == T(0)).all()) return;
  T* const to = values_.data() + first;
  const Index width = width_;
  for_entries(X_, i, [&](Index f, double value) { Map(to + f * width) += static_cast<T>(value) * own; });
  if (bias_ != 0.0) Map(to + input_features(X_) * width) += static_cast<T>(bias_) * own;
}

template <class T>
void ClassWeights<T>::add(Index i, const T* step) {
  in_pieces(width_, [&](Index first, auto piece) { add_to<piece()>(i, first, step); });
}

template class ClassWeights<float>;
template class ClassWeights<double>;

}  // namespace taxolearn
