// A stage's list is two sequences, its forward and its backward passes, and how many forward passes go ahead.
#include "trainer/pipeline/schedule.h"

#include <fmt/format.h>

#include <algorithm>

namespace tycho {
namespace {

using Direction = PipelineAction::Kind;

/// Returns the sizes of the groups of micro-batches that pass through all chunks of a stage before the next
/// group begins.
std::vector<int> group_sizes(const PipelineShape& shape) {
  if (shape.num_chunks == 1) return {shape.num_micro_batches};
  const int groups = std::max(1, shape.num_micro_batches / shape.num_stages);
  std::vector<int> sizes(static_cast<size_t>(groups), shape.num_micro_batches / groups);
  const auto larger = shape.num_micro_batches % groups;
  for (int i = 0; i < larger; ++i) ++sizes[static_cast<size_t>(i)];
  return sizes;
}

/// Returns all passes of one kind through the chunks of a stage.
StageActions passes(const PipelineShape& shape, Direction kind) {
  StageActions actions;
  int first = 0;
  for (const int size : group_sizes(shape)) {
    for (int i = 0; i < shape.num_chunks; ++i) {
      const int chunk = kind == Direction::kForward ? i : shape.num_chunks - 1 - i;
      for (int micro_batch = first; micro_batch < first + size; ++micro_batch)
        actions.push_back({kind, chunk, micro_batch});
    }
    first += size;
  }
  return actions;
}

/// Returns the number of forward passes of a stage before its first backward pass, less the one right before
/// it.
int num_ahead(const PipelineShape& shape, int stage) {
  const int all = shape.num_micro_batches * shape.num_chunks, after = shape.num_stages - 1 - stage;
  if (shape.schedule == PipelineSchedule::kGpipe) return all;
  if (shape.num_chunks == 1) return std::min(all, after);
  return std::min(all, 2 * after + (shape.num_chunks - 1) * group_sizes(shape).front());
}

}  // namespace

const char* name_of(PipelineSchedule schedule) {
  for (const auto& [name, value] : enum_names(schedule))
    if (value == schedule) return name;
  return "";
}

std::string shape_problem(const PipelineShape& shape) {
  if (shape.num_stages < 1) return fmt::format("a pipeline has at least one stage, not {}", shape.num_stages);
  if (shape.num_micro_batches < 1)
    return fmt::format("a step has at least one micro-batch, not {}", shape.num_micro_batches);
  const bool interleaved = shape.schedule == PipelineSchedule::kInterleaved;
  if (interleaved && shape.num_chunks < 2)
    return fmt::format(
        "the schedule \"interleaved\" has at least two chunks on each stage, not {}; write \"1f1b\" for one",
        shape.num_chunks);
  if (!interleaved && shape.num_chunks != 1)
    return fmt::format("the schedule \"{}\" has one chunk on each stage, not {}; \"interleaved\" has several",
                       name_of(shape.schedule), shape.num_chunks);
  return "";
}

PipelineTable pipeline_table(const PipelineShape& shape) {
  const StageActions forward = passes(shape, Direction::kForward),
                     backward = passes(shape, Direction::kBackward);
  PipelineTable table;
  for (int stage = 0; stage < shape.num_stages; ++stage) {
    const auto ahead = static_cast<size_t>(num_ahead(shape, stage));
    StageActions actions(forward.begin(), forward.begin() + static_cast<std::ptrdiff_t>(ahead));
    for (size_t i = 0; i < backward.size(); ++i) {
      if (ahead + i < forward.size()) actions.push_back(forward[ahead + i]);
      actions.push_back(backward[i]);
    }
    table.push_back(std::move(actions));
  }
  return table;
}

std::string describe(const PipelineShape& shape, const PipelineAction& action) {
  std::string text =
      fmt::format("the {} pass of micro-batch {}",
                  action.kind == Direction::kForward ? "forward" : "backward", action.micro_batch);
  if (shape.num_chunks > 1) text += fmt::format(" through chunk {}", action.chunk);
  return text;
}

}  // namespace tycho
