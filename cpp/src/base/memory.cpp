#include "taxolearn/base/memory.hpp"

#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace taxolearn {
namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t huge_page = std::size_t{1} << 21;

std::align_val_t alignment_of(std::size_t bytes) {
  return std::align_val_t{bytes >= 2 * huge_page ? huge_page : cache_line};
}

}  // namespace

void* allocate_aligned(std::size_t bytes) {
  void* const pointer = ::operator new(bytes, alignment_of(bytes));
#ifdef MADV_HUGEPAGE
  // A wish: without it the memory is as good, only slower.
  if (bytes >= 2 * huge_page) static_cast<void>(madvise(pointer, bytes / huge_page * huge_page, MADV_HUGEPAGE));
#endif
  return pointer;
}

void free_aligned(void* pointer, std::size_t bytes) noexcept { ::operator delete(pointer, alignment_of(bytes)); }

}  // namespace taxolearn
