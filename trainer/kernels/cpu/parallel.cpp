// The one parallel loop of the CPU kernels, and the memory of its threads.
#include "trainer/kernels/cpu/parallel.h"

#include <omp.h>

#include "trainer/base/page_memory.h"
#include "trainer/kernels/cpu/thread_pool.h"

namespace tycho {
namespace {

/// Memory that is reallocated only when it is too small.
class Growing {
 public:
  void* at_least(int64_t num_bytes) {
    if (num_bytes > size_) {
      memory_.reset();
      memory_ = page_memory(static_cast<size_t>(num_bytes));
      size_ = num_bytes;
    }
    return memory_.get();
  }

 private:
  PageMemory memory_;
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

int64_t loop_threads() { return omp_get_max_threads(); }

void run_blocks(int64_t num_blocks, bool parallel, void (*body)(const void*, int64_t), const void* context) {
  if (!parallel) {
    for (int64_t block = 0; block < num_blocks; ++block) body(context, block);
    return;
  }
  // Never destroyed: its threads may still wait for work when the process ends.
  static ThreadPool& pool = *new ThreadPool;
  pool.run(num_blocks, omp_get_max_threads(), body, context);
}

}  // namespace tycho
