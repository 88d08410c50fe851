// What the inner loops know of the machine: its registers, by Eigen's names for them, and its cache.
#pragma once

#include <Eigen/Core>
#include <type_traits>
#include <utility>

#include "taxolearn/base/matrix.hpp"

namespace taxolearn {

template <class T>
using Packet = typename Eigen::internal::packet_traits<T>::type;

/// Numbers in a packet.
template <class T>
constexpr Index lanes = Eigen::internal::packet_traits<T>::size;

constexpr bool many_registers = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32;

/// Asks for the line of the cache at an address that will be needed soon; any address will do.
inline void prefetch([[maybe_unused]] const void* address) {
#ifdef __GNUC__
  __builtin_prefetch(address);
#endif
}

template <class Body, int... k>
inline void unroll(const Body& body, std::integer_sequence<int, k...>) {
  (body(std::integral_constant<int, k>{}), ...);
}

/// body(0), ..., body(Count - 1) with constants, so that arrays indexed by them become registers.
template <int Count, class Body>
inline void unrolled(const Body& body) {
  unroll(body, std::make_integer_sequence<int, Count>{});
}

}  // namespace taxolearn
