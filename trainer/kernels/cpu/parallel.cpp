// The one parallel loop of the CPU kernels, and the memory of its threads.
#include "trainer/kernels/cpu/parallel.h"

#include <omp.h>
#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "trainer/kernels/cpu/thread_pool.h"

namespace tycho {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

struct Freed {
  void operator()(void* memory) const { std::free(memory); }
};

/// Whole huge pages for what is large: strips are read all over, and small pages would miss in the TLB.
void* allocate(int64_t num_bytes) {
  const bool huge = num_bytes >= kHugePage;
  const int64_t alignment = huge ? kHugePage : 64;
  num_bytes = (num_bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(num_bytes));
  if (!memory) throw std::bad_alloc();
  if (huge) madvise(memory, static_cast<size_t>(num_bytes), MADV_HUGEPAGE);
  return memory;
}

/// Memory that is only taken anew when it is too small.
class Growing {
 public:
  void* at_least(int64_t num_bytes) {
    if (num_bytes > size_) {
      memory_.reset();
      memory_.reset(allocate(num_bytes));
      size_ = num_bytes;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<void, Freed> memory_;
  int64_t size_ = 0;
};

}  // namespace

void* thread_memory(int64_t num_bytes) {
  thread_local Growing memory;
  return memory.at_least(num_bytes);
}

void* caller_memory(int64_t num_bytes) {
  thread_local Growing memory;
  return memory.at_least(num_bytes);
}

void run_blocks(int64_t num_blocks, bool parallel, void (*body)(const void*, int64_t), const void* context) {
  if (!parallel) {
    for (int64_t block = 0; block < num_blocks; ++block) body(context, block);
    return;
  }
  // Never destroyed: its threads may still look for work when the process ends.
  static ThreadPool& pool = *new ThreadPool;
  pool.run(num_blocks, omp_get_max_threads(), body, context);
}

}  // namespace tycho
