// What parallel.reduce = "canonical" needs of the machine that a run computes on.
#pragma once
#include "trainer/config/train_config.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

/// Throws Error (kTopology) when the bits of a canonical run would depend on the number of its ranks here: on
/// a GPU, whose sums over ranks are NCCL's, and where LibTorch multiplies matrices on as many threads as a
/// rank happens to have. After set_threads.
void require_canonical_route(const TrainConfig& config, const at::Device& device);

}  // namespace tycho
