// Describes a run before its first step, for displays and callbacks.
#pragma once
#include <string>

#include "trainer/config/train_config.h"
#include "trainer/kernels/tensor.h"
#include "trainer/metrics/step_metrics.h"
#include "trainer/run_folder/run_folder.h"

namespace tycho {

/// All but first_step. Counts the samples of the data. Throws Error (kUnusable) for data that is not there.
RunInfo describe_run(const TrainConfig& config, const RunRequest& request, const at::Device& device,
                     const std::string& run_dir);

}  // namespace tycho
