// Division of a model's parameters among the ranks of a group: equal ranges of every unit, and the few
// buffers for whole units. Torch-free: `tycho plan` and the engine count the same bytes.
#pragma once
#include <cstdint>
#include <vector>

#include "trainer/layout/param_spec.h"
#include "trainer/layout/sum_tree.h"

namespace tycho {

struct ShardRules {
  int64_t num_ranks = 1;     // ranks that share every unit
  bool keep_params = false;  // units stay whole between forward and backward
  bool keep_grads = false;   // gradients stay whole until the last micro-batch of a step
  bool tied = false;         // the first unit and the last one are used together
  bool reduce_bf16 = false;  // gradients travel as bf16
  // Over a rank's micro-batches of a step, whose gradients it adds; one leaf: in order.
  SumTree tree = {};
  int64_t num_replicas = 1;  // ranks that hold the same ranges of other copies, in plans
  // Of num_ranks, neighbours that have parts of the same sequences. In a tree each leaf is summed over them.
  int64_t cp = 1;
  bool register_buffers = false;  // register them with NCCL
  // A step has one backward pass: until it writes a block's gradient, that memory may hold activations.
  bool lends_gradients = false;
};

/// Number of elements of a unit whose sums a rank holds, for a tree of several leaves. Ranks along cp share a
/// leaf.
int64_t leaf_elements(int64_t unit_numel, const ShardRules& rules);

/// Number of elements of a unit's gradient in which activations may wait for their backward: all or none.
int64_t lent_elements(const UnitSpec& unit, const ShardRules& rules);

/// Elements [begin, end) of a unit.
struct ShardRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

/// Number of elements that each rank holds of a unit, padding included: equal on all ranks, and whole vectors
/// of the kernels.
int64_t shard_elements(int64_t unit_numel, int64_t num_ranks);
/// Elements of a unit that rank `rank` owns, without padding; perhaps none.
ShardRange shard_range(int64_t unit_numel, int64_t num_ranks, int64_t rank);

/// Buffers that units use in turn.
struct UnitBuffers {
  static constexpr int kNone = -1;
  std::vector<int> of_unit;       // kNone for a unit that needs no buffer
  std::vector<int64_t> elements;  // size of each buffer: that of its largest unit, padded
};

/// Assigns buffers for whole parameters. Two neighbouring blocks never share a buffer, so that one can be
/// gathered while the other computes; neither do the first and the last unit when they are used together.
UnitBuffers param_buffers(const std::vector<UnitSpec>& units, const ShardRules& rules);
/// Assigns buffers for whole gradients, by the rules of param_buffers. Frozen units have none.
UnitBuffers grad_buffers(const std::vector<UnitSpec>& units, const ShardRules& rules);

}  // namespace tycho
