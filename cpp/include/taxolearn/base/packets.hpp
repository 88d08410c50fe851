// What the inner loops know of the machine: its registers, by Eigen's names for them, and its cache.
#pragma once

#include <Eigen/Core>
#include <type_traits>
#include <utility>

#include "taxolearn/base/matrix.hpp"

#if defined(__GNUC__) && !defined(__clang__)
// Eigen's packets are vector types with attributes; as template arguments they are meant without.
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

namespace taxolearn {

// Eigen does not promise to keep these; nothing else of its insides is used.
using Eigen::internal::PacketBlock;
using Eigen::internal::padd;
using Eigen::internal::pload;
using Eigen::internal::ploadu;
using Eigen::internal::pmadd;
using Eigen::internal::pmul;
using Eigen::internal::predux;
using Eigen::internal::pset1;
using Eigen::internal::pstore;
using Eigen::internal::pstoreu;
using Eigen::internal::ptranspose;

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
