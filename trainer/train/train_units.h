// What a rank trains: its part of the model, in a store shared with the ranks that have the same part.
#pragma once
#include <functional>
#include <memory>

#include "trainer/comm/mesh.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/model_layout.h"
#include "trainer/models/parallel_region.h"
#include "trainer/models/pipeline_stage.h"
#include "trainer/recipe/train_config.h"
#include "trainer/sharding/unit_store.h"

namespace tycho {

/// Returns the ranks along tp and cp with which this one shares blocks and sequences. The mesh must outlive
/// it.
ParallelRegion parallel_region(const TrainConfig& config, const Mesh& mesh);
/// Returns the part of the model that this rank has along pp. The mesh must outlive it.
PipelineStage pp_stage(const TrainConfig& config, const Mesh& mesh);

/// Returns the shape of a micro-batch of this rank, in rows of seq_len.
BatchShape micro_batch_shape(const TrainConfig& config, const Mesh& mesh);

/// Takes the memory of parameters and gradients. Collective; the mesh outlives the store.
std::unique_ptr<UnitStore> make_train_units(const TrainConfig& config, const Mesh& mesh,
                                            const at::Device& device);

/// Fills the weights from those that the recipe names; what these do not have is drawn from the seed. Calls
/// `between` now and then, which may throw.
void take_first_weights(const TrainConfig& config, UnitStore& units, const std::function<void()>& between);

}  // namespace tycho
