// Checks that a run fits into the free memory, before it allocates any.
#pragma once
#include "trainer/kernels/tensor.h"
#include "trainer/recipe/train_config.h"
#include "trainer/session/run_request.h"

namespace tycho {

/// Returns the bytes that the plan expects at the peak on this rank's device, without what the process holds
/// already and without what libraries take for themselves on a GPU. Throws Error (kNumerics) with the table
/// of `tycho plan` when the run takes more memory than the host or the GPU has free now, including the memory
/// of a save; with request.force it plans nothing and returns 0.
int64_t require_memory(const TrainConfig& config, const at::Device& device, const RunRequest& request);

}  // namespace tycho
