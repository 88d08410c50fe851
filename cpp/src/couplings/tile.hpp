// Rows of a block side by side: products with sparse structures of the classes run in vectors across rows.
#pragma once

#include "taxolearn/base/packets.hpp"

namespace taxolearn {

/// place(c)[r] = rows[r, c] for as many rows as a vector has elements; zero where there is no row.
template <class T, class Place>
void to_tile(const DenseView<const T>& rows, const Place& place) {
  using P = Packet<T>;
  constexpr Index width = lanes<T>;
  Index c = 0;
  if (rows.rows == width) {
    for (; c + width <= rows.cols; c += width) {
      PacketBlock<P, width> block;
      for (Index r = 0; r < width; ++r) block.packet[r] = ploadu<P>(rows.row(r) + c);
      ptranspose(block);
      for (Index k = 0; k < width; ++k) pstore(place(c + k), block.packet[k]);
    }
  }
  for (; c < rows.cols; ++c)
    for (Index r = 0; r < width; ++r) place(c)[r] = r < rows.rows ? rows.row(r)[c] : T(0);
}

/// The way back.
template <class T, class Place>
void from_tile(const Place& place, const DenseView<T>& rows) {
  using P = Packet<T>;
  constexpr Index width = lanes<T>;
  Index c = 0;
  if (rows.rows == width) {
    for (; c + width <= rows.cols; c += width) {
      PacketBlock<P, width> block;
      for (Index k = 0; k < width; ++k) block.packet[k] = pload<P>(place(c + k));
      ptranspose(block);
      for (Index r = 0; r < width; ++r) pstoreu(rows.row(r) + c, block.packet[r]);
    }
  }
  for (; c < rows.cols; ++c)
    for (Index r = 0; r < rows.rows; ++r) rows.row(r)[c] = place(c)[r];
}

}  // namespace taxolearn
