// What a rank trains: its part of the model, in a store shared with the ranks that have the same part.
#pragma once
#include <memory>

#include "trainer/config/train_config.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/model_layout.h"
#include "trainer/models/parallel_region.h"
#include "trainer/models/pipeline_stage.h"
#include "trainer/optim/param_rules.h"
#include "trainer/parallel/mesh.h"
#include "trainer/parallel/unit_store.h"

namespace tycho {

/// The ranks along tp and cp, as the recipe wants them to share blocks and sequences. The mesh outlives it.
ParallelRegion parallel_region(const TrainConfig& config, const Mesh& mesh);
/// The part of the model that this rank has along pp. The mesh outlives it.
PipelineStage pp_stage(const TrainConfig& config, const Mesh& mesh);

/// The shape of a micro-batch of this rank, in rows of seq_len.
BatchShape micro_batch_shape(const TrainConfig& config, const Mesh& mesh);

/// Takes the memory of parameters and gradients. Collective; the mesh outlives the store.
std::unique_ptr<UnitStore> make_train_units(const TrainConfig& config, const ParamRules& rules,
                                            const Mesh& mesh, const at::Device& device);

}  // namespace tycho
