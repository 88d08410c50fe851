#include <doctest/doctest.h>

#include <cstdint>

#include "taxolearn/base/matrix.hpp"

using namespace taxolearn;

TEST_CASE("memory lies on cache lines, large arrays on huge pages, and all of it can be written") {
  for (const std::size_t bytes : {1UL, 63UL, 4096UL, (1UL << 22) - 1, 1UL << 22, (1UL << 23) + 12345}) {
    auto* const memory = static_cast<unsigned char*>(allocate_aligned(bytes));
    CHECK(reinterpret_cast<std::uintptr_t>(memory) % (bytes < (1UL << 22) ? 64 : 1UL << 21) == 0);
    for (std::size_t k = 0; k < bytes; ++k) memory[k] = static_cast<unsigned char>(k % 251);
    bool kept = true;
    for (std::size_t k = 0; k < bytes; ++k) kept = kept && memory[k] == k % 251;
    CHECK(kept);
    free_aligned(memory, bytes);
  }
}

TEST_CASE("buffers that grow past the size of huge pages keep what they hold") {
  Buffer<double> buffer;
  for (int k = 0; k < 1 << 20; ++k) buffer.push_back(k);
  bool kept = true;
  for (int k = 0; k < 1 << 20; ++k) kept = kept && buffer[static_cast<std::size_t>(k)] == k;
  CHECK(kept);
}
