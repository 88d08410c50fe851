// Memory for large arrays: on borders of cache lines, in huge pages where the system has them.
//
// Sparse products touch rows all over an array; with pages of 4 kB many of them would miss the processor's table of pages, and
// every new array would cost a fault for each of its pages.
#pragma once

#include <cstddef>

namespace taxolearn {

/// Returns uninitialised memory; throws std::bad_alloc where there is none.
void* allocate_aligned(std::size_t bytes);

/// Takes back what allocate_aligned gave for as many bytes.
void free_aligned(void* pointer, std::size_t bytes) noexcept;

}  // namespace taxolearn
