// Whether a run fits into the free memory, checked before it allocates any.
#pragma once
#include "trainer/config/train_config.h"
#include "trainer/kernels/tensor.h"
#include "trainer/run_folder/run_folder.h"

namespace tycho {

/// Throws Error (kNumerics) with the table of `tycho plan` when the run takes more than the host, or the GPU,
/// has free now; with request.force it never does. What a save takes counts.
void require_memory(const TrainConfig& config, const at::Device& device, const RunRequest& request);

}  // namespace tycho
