// Describes a run before its first step: for displays and callbacks, and for its checkpoints.
#pragma once
#include <string>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/data/rows/opened_data.h"
#include "trainer/kernels/tensor.h"
#include "trainer/metrics/step_metrics.h"
#include "trainer/recipe/mesh_shape.h"
#include "trainer/recipe/train_config.h"
#include "trainer/session/run_request.h"

namespace tycho {

/// Returns everything except first_step, for a run from its beginning. Counts the samples of the data. Throws
/// Error (kUnusable) for missing data.
RunInfo describe_run(const TrainConfig& config, const RunRequest& request, const at::Device& device,
                     const std::string& run_dir, const OpenedData& opened);

/// Returns the facts that every checkpoint of the run records, and the small files that it keeps: those
/// beside its first weights, and the tokenizer's, whose text is `tokenizer`, or "".
CheckpointMeta describe_checkpoints(const TrainConfig& config, const RunRequest& request,
                                    const at::Device& device, const MeshShape& mesh,
                                    const std::string& tokenizer);

}  // namespace tycho
