// Numbers side by side in one vector register. Arithmetic and comparisons go lane by lane, and so does the choice
// `mask ? a : b`, which makes masked instructions where there are some. Without the compiler's vectors a register has
// one lane, and the same code works.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "taxolearn/base/matrix.hpp"

namespace taxolearn {

#if defined(__AVX512F__)
constexpr int register_bytes = 64, register_count = 32;
#elif defined(__AVX__)
constexpr int register_bytes = 32, register_count = 16;
#elif defined(__aarch64__)
constexpr int register_bytes = 16, register_count = 32;
#else
constexpr int register_bytes = 16, register_count = 16;
#endif

template <class T>
struct LaneVectors {
  using Code = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;  ///< as wide as a T
#if defined(__GNUC__)
  static constexpr int count = register_bytes / static_cast<int>(sizeof(T));
  typedef T Values __attribute__((vector_size(register_bytes)));
  typedef Code Codes __attribute__((vector_size(register_bytes)));
#else
  static constexpr int count = 1;
  using Values = T;
  using Codes = Code;
#endif

  static Values all(T value) { return value - Values{}; }

  static Values load(const T* from) {
    Values out;
    std::memcpy(&out, from, sizeof(Values));
    return out;
  }
  static Codes load(const Code* from) {
    Codes out;
    std::memcpy(&out, from, sizeof(Codes));
    return out;
  }
  static void store(const Values& values, T* to) { std::memcpy(to, &values, sizeof(Values)); }
};

}  // namespace taxolearn
