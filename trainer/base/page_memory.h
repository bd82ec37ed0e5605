// Uninitialised memory that starts on a page, on huge pages where it is large.
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace tycho {

struct FreeMemory {
  void operator()(char* memory) const { std::free(memory); }
};
using PageMemory = std::unique_ptr<char, FreeMemory>;

/// Allocates at least num_bytes. From 2 MiB on it asks for huge pages, because first touches of small pages
/// cost as much as copying and walks over large memory miss in the TLB. A kernel without huge pages ignores
/// the request.
inline PageMemory page_memory(size_t num_bytes) {
  constexpr size_t kPage = 4096, kHugePage = size_t{2} << 20;
  const size_t alignment = num_bytes >= kHugePage ? kHugePage : kPage;
  num_bytes = (std::max<size_t>(num_bytes, 1) + alignment - 1) / alignment * alignment;
  PageMemory memory(static_cast<char*>(std::aligned_alloc(alignment, num_bytes)));
  if (!memory) throw std::bad_alloc();
  if (alignment == kHugePage) madvise(memory.get(), num_bytes, MADV_HUGEPAGE);
  return memory;
}

}  // namespace tycho
