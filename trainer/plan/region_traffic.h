// What moves between ranks while blocks compute: along tp, which share matrices, and cp, which share
// sequences. Torch-free.
#pragma once
#include <vector>

#include "trainer/layout/cp_shape.h"
#include "trainer/layout/model_layout.h"
#include "trainer/layout/tp_parts.h"
#include "trainer/plan/plan.h"
#include "trainer/plan/rank_share.h"
#include "trainer/plan/state_memory.h"
#include "trainer/recipe/parallel.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Returns the ranks along cp of a config's mesh, and how attention gets their keys. "auto" counts as gather.
CpShape cp_shape(const ParallelConfig& parallel);

/// Returns the bytes that a rank receives in a step, named after their axes. `whole` is the model's layout;
/// `shape` is that of a micro-batch with whole sequences.
std::vector<ByteItem> region_traffic(const TrainConfig& config, const ModelLayout& whole,
                                     const RankShare& share, const TpShape& tp, BatchShape shape,
                                     int64_t micro_batches);

}  // namespace tycho
