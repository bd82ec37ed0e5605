// The state of a model on one rank: parameters, gradients, what the optimizer keeps; and what of it moves
// between ranks. Torch-free.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/layout/model_layout.h"
#include "trainer/layout/unit_shards.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// A number of bytes and their purpose.
struct ByteItem {
  std::string name;
  int64_t num_bytes = 0;
  std::string note;  // "fp32 master, exp_avg, exp_avg_sq"
  bool is_estimate = false;
};

/// The optimizer's state for all parameters, with the names of a checkpoint.
struct OptimizerBytes {
  int64_t numbers = 0;    // fp32, of the whole model
  int64_t num_bytes = 0;  // buffers of one rank, each padded to whole pages
  std::vector<std::string> names;
};
OptimizerBytes optimizer_state(const TrainConfig& config, const ModelLayout& layout, const ShardRules& rules);

/// Returns the moving average's state, without the copy that waits while it is evaluated; empty without ema.
OptimizerBytes average_state(const TrainConfig& config, const ModelLayout& layout, const ShardRules& rules);

/// Returns the state of the rank that holds most.
std::vector<ByteItem> state_memory(const TrainConfig& config, const ModelLayout& layout,
                                   const ShardRules& rules);
/// Returns the bytes of the copy of its state that a rank makes for a checkpoint.
int64_t state_copy_bytes(const TrainConfig& config, const ModelLayout& layout, const ShardRules& rules);
/// Returns true when the parameters have fp32 master weights.
bool has_master(const TrainConfig& config);

/// Returns the bytes that a rank receives from others in a step of `micro_batches` micro-batches, by axis.
std::vector<ByteItem> step_traffic(const TrainConfig& config, const ModelLayout& layout,
                                   const ShardRules& rules, int64_t num_replicas, int64_t micro_batches);

}  // namespace tycho
