// The one parallel loop of the CPU kernels.
#include "trainer/kernels/cpu/parallel.h"

namespace tycho {

void run_blocks(int64_t num_blocks, bool parallel, void (*body)(const void*, int64_t), const void* context) {
  if (!parallel) {
    for (int64_t block = 0; block < num_blocks; ++block) body(context, block);
    return;
  }
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t block = 0; block < num_blocks; ++block) body(context, block);
}

}  // namespace tycho
