// The state of a model on one rank: parameters, gradients, what the optimizer keeps; and what of it moves
// between ranks. Torch-free.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/train_config.h"
#include "trainer/layout/model_layout.h"
#include "trainer/layout/unit_shards.h"

namespace tycho {

/// Bytes by what they are for.
struct ByteItem {
  std::string name;
  int64_t num_bytes = 0;
  std::string note;  // "fp32 master, exp_avg, exp_avg_sq"
};

/// What the optimizer keeps of all parameters, with the names of a checkpoint.
struct OptimizerBytes {
  int64_t numbers = 0;    // fp32, of the whole model
  int64_t num_bytes = 0;  // of the buffers of one rank, each padded to whole pages
  std::vector<std::string> names;
};
OptimizerBytes optimizer_state(const TrainConfig& config, const ModelLayout& layout, const ShardRules& rules);

/// The same of the moving average of the weights, without what waits while it is evaluated; nothing without
/// ema.
OptimizerBytes average_state(const TrainConfig& config, const ModelLayout& layout, const ShardRules& rules);

/// Of the rank that holds most.
std::vector<ByteItem> state_memory(const TrainConfig& config, const ModelLayout& layout,
                                   const ShardRules& rules);
/// The copy of its state that a rank makes for a checkpoint.
int64_t state_copy_bytes(const TrainConfig& config, const ModelLayout& layout, const ShardRules& rules);
/// Whether the parameters have fp32 masters beside them.
bool has_master(const TrainConfig& config);

/// Bytes that a rank receives from others in a step of so many micro-batches, by axis.
std::vector<ByteItem> step_traffic(const TrainConfig& config, const ModelLayout& layout,
                                   const ShardRules& rules, int64_t num_replicas, int64_t micro_batches);

}  // namespace tycho
