// Memory for large arrays that are accessed in random order.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace tycho {

/// Allocator that asks for huge pages: with small pages nearly every access would miss the processor's TLB. A
/// kernel without huge pages ignores the request. Elements that a vector grows by are not initialized:
/// zeroing them would take most of the time of a short epoch.
template <class T>
struct HugePages {
  using value_type = T;
  static constexpr size_t kPage = size_t{2} << 20, kLeastAlignment = 1024;

  HugePages() = default;
  template <class U>
  HugePages(const HugePages<U>&) {}

  T* allocate(size_t count) {
    const size_t alignment = count * sizeof(T) < kPage ? kLeastAlignment : kPage;
    const size_t bytes = (count * sizeof(T) + alignment - 1) / alignment * alignment;
    void* const memory = std::aligned_alloc(alignment, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    if (alignment == kPage) madvise(memory, bytes, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t) { std::free(memory); }
  template <class U, class... Args>
  void construct(U* item, Args&&... args) {
    if constexpr (sizeof...(Args) == 0)
      ::new (static_cast<void*>(item)) U;
    else
      ::new (static_cast<void*>(item)) U(std::forward<Args>(args)...);
  }
  template <class U>
  bool operator==(const HugePages<U>&) const {
    return true;
  }
};

}  // namespace tycho
