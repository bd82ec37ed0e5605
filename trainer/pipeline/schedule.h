// The order in which the stages of a pipeline compute the passes of a step. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/fields.h"

namespace tycho {

/// gpipe: all forward passes, then all backward passes (Huang et al. 2019, arXiv:1811.06965). 1f1b: after a
/// warm-up, one forward and one backward pass in turn. interleaved: 1f1b with several chunks of the model on
/// each stage (both: Narayanan et al. 2021, arXiv:2104.04473).
enum class PipelineSchedule { kGpipe, k1f1b, kInterleaved };
constexpr EnumNames<PipelineSchedule, 3> enum_names(PipelineSchedule) {
  return {{{"gpipe", PipelineSchedule::kGpipe},
           {"1f1b", PipelineSchedule::k1f1b},
           {"interleaved", PipelineSchedule::kInterleaved}}};
}
const char* name_of(PipelineSchedule schedule);

/// A step of a pipeline. The model is cut into num_parts() parts, in order; chunk c of stage s is part
/// c * num_stages + s.
struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::k1f1b;
  int num_stages = 1;
  int num_micro_batches = 1;
  int num_chunks = 1;  // of each stage; more than one only for kInterleaved
  int num_parts() const { return num_stages * num_chunks; }
  int part_of(int stage, int chunk) const { return chunk * num_stages + stage; }
  int stage_of(int part) const { return part % num_stages; }
  int chunk_of(int part) const { return part / num_stages; }
};

/// Returns "" for a shape that has a table, else what is wrong with it and what works.
std::string shape_problem(const PipelineShape& shape);

/// A pass of one micro-batch through one chunk of a stage.
struct PipelineAction {
  enum class Kind { kForward, kBackward };
  Kind kind = Kind::kForward;
  int chunk = 0;
  int micro_batch = 0;
  friend bool operator==(const PipelineAction&, const PipelineAction&) = default;
};
/// The passes of a stage in the order in which it computes them.
using StageActions = std::vector<PipelineAction>;
/// The passes of all stages.
using PipelineTable = std::vector<StageActions>;

/// Returns the table of a shape without problem. A chunk computes its micro-batches in ascending order in
/// both directions, so the order in which gradients are summed does not depend on the schedule. Interleaved
/// accepts any number of micro-batches: groups of at least num_stages, as equal as possible, larger ones
/// first. For a multiple of num_stages this is Megatron's order.
PipelineTable pipeline_table(const PipelineShape& shape);

/// Returns "the forward pass of micro-batch 3" or "the backward pass of micro-batch 3 through chunk 1".
std::string describe(const PipelineShape& shape, const PipelineAction& action);

}  // namespace tycho
