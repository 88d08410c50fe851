// Independent standard normal numbers, the same on every system.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

#include "taxolearn/base/matrix.hpp"

namespace taxolearn {

template <class T>
Matrix<T> gaussian(Index rows, Index cols, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto uniform = [&random] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; };
  Matrix<T> out = Matrix<T>::uninitialised(rows, cols);
  for (Index k = 0; k < out.size(); ++k) {  // Box and Muller
    const double radius = std::sqrt(-2.0 * std::log(uniform()));
    out.data()[k] = static_cast<T>(radius * std::cos(6.283185307179586 * uniform()));
  }
  return out;
}

}  // namespace taxolearn
