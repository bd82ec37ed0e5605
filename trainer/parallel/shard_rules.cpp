// From the keys of a recipe to the rules of the unit store.
#include "trainer/parallel/shard_rules.h"

namespace tycho {

ShardRules shard_rules(const ParallelConfig& parallel, const ModelLayout& model, int64_t num_ranks) {
  const MeshShape mesh = mesh_shape(parallel, num_ranks);
  return {.num_ranks = mesh.size(kShardAxes),
          .keep_params = !parallel.reshard_after_forward,
          .keep_grads = parallel.keep_gradients,
          .tied = model.tied,
          .reduce_bf16 = parallel.reduce_dtype == Precision::kBf16,
          .num_replicas = mesh.size(Axis::kDpReplicate)};
}

}  // namespace tycho
