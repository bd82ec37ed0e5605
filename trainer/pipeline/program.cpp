// Sorts passes and messages by the time at which they begin when all parts cost the same.
#include "trainer/pipeline/program.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "trainer/pipeline/simulation.h"

namespace tycho {
namespace {

using Kind = PipelineOp::Kind;

/// A pass, or a message with both of its halves.
struct Event {
  double time = 0;
  int rank = 0;  // order of events at the same time: messages of even stages, of odd ones, then passes
  int stage = 0;
  PipelineOp op;
  int chunk_there = 0;  // receiving chunk of a message
};

bool before(const Event& a, const Event& b) {
  return std::tie(a.time, a.rank, a.stage) < std::tie(b.time, b.rank, b.stage);
}

/// Adds the message that a pass causes, if any.
void add_message(const PipelineShape& shape, int stage, const PipelineAction& action, double end_s,
                 std::vector<Event>& events) {
  const bool forward = action.kind == PipelineAction::Kind::kForward;
  const int next = shape.part_of(stage, action.chunk) + (forward ? 1 : -1);
  if (next < 0 || next >= shape.num_parts() || shape.stage_of(next) == stage) return;
  // Even stages send first: a chain of messages of one time would make each wait for the one before.
  events.push_back({end_s, stage % 2, stage,
                    PipelineOp{forward ? Kind::kSendActivation : Kind::kSendGradient, action.chunk,
                               action.micro_batch, shape.stage_of(next)},
                    shape.chunk_of(next)});
}

std::vector<Event> all_events(const PipelineShape& shape, const PipelineTable& table) {
  constexpr int kAfterMessages = 2;
  const PipelineTimes times = simulate_pipeline(shape, table, equal_costs(shape));
  std::vector<Event> events;
  for (int stage = 0; stage < shape.num_stages; ++stage) {
    const StageActions& actions = table[static_cast<size_t>(stage)];
    for (size_t i = 0; i < actions.size(); ++i) {
      const PipelineAction& action = actions[i];
      const PipelineTimes::Span span = times.spans[static_cast<size_t>(stage)][i];
      const Kind kind = action.kind == PipelineAction::Kind::kForward ? Kind::kForward : Kind::kBackward;
      events.push_back(
          {span.begin_s, kAfterMessages, stage, {kind, action.chunk, action.micro_batch, -1}, 0});
      add_message(shape, stage, action, span.end_s, events);
    }
  }
  std::stable_sort(events.begin(), events.end(), before);
  return events;
}

using Pass = std::pair<int, int>;  // chunk, micro-batch
Pass pass_of(const PipelineOp& op) { return {op.chunk, op.micro_batch}; }

}  // namespace

std::vector<StageProgram> pipeline_programs(const PipelineShape& shape, const PipelineTable& table) {
  std::vector<StageProgram> programs(table.size());
  for (const Event& event : all_events(shape, table)) {
    programs[static_cast<size_t>(event.stage)].push_back(event.op);
    if (event.op.peer < 0) continue;
    const Kind received =
        event.op.kind == Kind::kSendActivation ? Kind::kReceiveActivation : Kind::kReceiveGradient;
    programs[static_cast<size_t>(event.op.peer)].push_back(
        {received, event.chunk_there, event.op.micro_batch, event.stage});
  }
  return programs;
}

PipelineHolds pipeline_holds(const StageProgram& program) {
  PipelineHolds now, most;
  std::set<Pass> activations, gradients;
  for (const PipelineOp& op : program) {
    if (op.kind == Kind::kReceiveActivation) activations.insert(pass_of(op));
    if (op.kind == Kind::kReceiveGradient) gradients.insert(pass_of(op));
    if (op.kind == Kind::kForward) activations.erase(pass_of(op)), ++now.activations;
    most.activations = std::max(most.activations, now.activations);
    if (op.kind == Kind::kBackward) gradients.erase(pass_of(op)), --now.activations;
    most.received_activations = std::max(most.received_activations, static_cast<int>(activations.size()));
    most.received_gradients = std::max(most.received_gradients, static_cast<int>(gradients.size()));
  }
  return most;
}

}  // namespace tycho
