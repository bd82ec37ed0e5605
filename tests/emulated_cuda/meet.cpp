// Threads meet: barriers of a block, exchanges between the lanes of a warp.
#include "tests/emulated_cuda/block.h"
#include "tests/emulated_cuda/fiber.h"
#include "tests/emulated_cuda/memory.h"

namespace emulated {
namespace {

/// Gives way to the scheduler; comes back when this thread has its turn again.
void give_way() {
  Thread& thread = block.threads[runner.thread];
  tycho_switch_stack(&thread.stack, block.scheduler);
}

}  // namespace

void sync_threads(int line) {
  Thread& thread = block.threads[runner.thread];
  thread.state = State::kAtBarrier, thread.line = line;
  set_runnable(runner.thread, false);
  give_way();
}

unsigned own_lane() { return runner.thread % kLanes; }

uint64_t exchange(int line, unsigned mask, uint64_t value, unsigned source_lane) {
  const unsigned self = runner.thread, lane = own_lane(), first = self - lane;
  Meeting& meeting = block.meetings[self / kLanes];
  if ((mask >> lane & 1) == 0) fault("is not in the mask %08x of line %d", mask, line);
  if (meeting.arrived != 0 && (meeting.mask != mask || meeting.line != line))
    fault("comes to line %d with mask %08x, other lanes of its warp wait at line %d with mask %08x", line,
          mask, meeting.line, meeting.mask);
  if (source_lane >= kLanes || (mask >> source_lane & 1) == 0)
    fault("wants the value of lane %u, which the mask %08x of line %d has not", source_lane, mask, line);
  meeting.mask = mask, meeting.line = line;
  meeting.values[lane] = value, meeting.sources[lane] = source_lane;
  meeting.arrived |= 1u << lane;
  if (meeting.arrived != mask) {
    Thread& thread = block.threads[self];
    thread.state = State::kInWarp, thread.line = line;
    set_runnable(self, false);
    give_way();
    return thread.received;
  }
  for (unsigned i = 0; i < kLanes; ++i) {
    if ((mask >> i & 1) == 0) continue;
    Thread& other = block.threads[first + i];
    other.received = meeting.values[meeting.sources[i]];
    other.state = State::kRunnable;
    set_runnable(first + i, true);
  }
  meeting.arrived = 0;
  return block.threads[self].received;
}

void sync_warp(int line, unsigned mask) {
  const unsigned warp = runner.thread / kLanes;
  const uint32_t before = block.warp_turns[warp];
  exchange(line, mask, 0, own_lane());
  // Who arrives last goes on first, and counts for all.
  if (block.warp_turns[warp] == before) ++block.warp_turns[warp];
  runner.warp_turn = block.warp_turns[warp];
}

unsigned ballot(int line, unsigned mask, bool vote) {
  unsigned votes = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    if ((mask >> lane & 1) != 0 && exchange(line, mask, vote, lane) != 0) votes |= 1u << lane;
  return votes;
}

}  // namespace emulated
