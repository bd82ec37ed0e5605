// Checks that a run fits into the free memory, before it allocates any.
#pragma once
#include "trainer/kernels/tensor.h"
#include "trainer/recipe/train_config.h"
#include "trainer/session/run_request.h"

namespace tycho {

/// Throws Error (kNumerics) with the table of `tycho plan` when the run takes more memory than the host or
/// the GPU has free now, including the memory of a save. Never throws with request.force.
void require_memory(const TrainConfig& config, const at::Device& device, const RunRequest& request);

}  // namespace tycho
