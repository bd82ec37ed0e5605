// Derives the rules of the unit store from the keys of a recipe.
#include "trainer/layout/shard_rules.h"

namespace tycho {

// In a tree each rank keeps its own gradients until they are summed: ranks that share gradients would add
// those of different micro-batches first.
ShardRules shard_rules(const ParallelConfig& parallel, const ModelLayout& model, int64_t num_ranks,
                       int64_t micro_batches) {
  const MeshShape mesh = mesh_shape(parallel, num_ranks);
  const SumTree tree = {parallel.reduce == GradientOrder::kCanonical ? micro_batches : 1};
  return {.num_ranks = mesh.size(kShardAxes),
          .keep_params = !parallel.reshard_after_forward,
          .keep_grads = parallel.keep_gradients || tree.leaves > 1,
          .tied = model.tied,
          .reduce_bf16 = parallel.reduce_dtype == Precision::kBf16,
          .tree = tree,
          .num_replicas = mesh.size(Axis::kDpReplicate),
          .cp = mesh.size(Axis::kCp),
          .register_buffers = parallel.register_buffers,
          .lends_gradients = micro_batches == 1 && mesh.size(kShardAxes) == 1 &&
                             mesh.size(Axis::kDpReplicate) == 1 && mesh.size(Axis::kPp) == 1};
}

}  // namespace tycho
