// Walks neighbouring parameters together, so that one kernel call updates them.
#include "trainer/optim/weight_average.h"

#include <algorithm>
#include <utility>

#include "trainer/kernels/optimizer/muon_step.h"
#include "trainer/sharding/arena.h"

namespace tycho {
namespace {

constexpr int64_t kSwapElements = int64_t{1} << 20;  // at a time: little memory beside them

/// Elements [begin, begin + size) of an owned range that have an average, and their offset in its buffer.
struct Run {
  int64_t begin, size, at;
};

/// Returns the buffer of a range and its extents; adds adjacent extents to `runs` as one.
StateBuffer make_buffer(const OwnedRange& range, const std::vector<ParamRule>& rules,
                        std::vector<Run>& runs) {
  StateBuffer buffer{.name = kAverageBuffer, .extents = {}, .flat = {}};
  int64_t numel = 0;
  for (const Extent& e : range.extents) {
    if (rules[e.param].frozen) continue;
    if (!runs.empty() && runs.back().begin + runs.back().size == e.begin)
      runs.back().size += e.size();
    else
      runs.push_back({e.begin, e.size(), numel});
    buffer.extents.push_back({numel, numel + e.size(), e.spec, e.param, e.first});
    numel += e.size();
  }
  if (numel > 0)
    buffer.flat = arena_view(make_arena(numel * 4, range.params.device()), 0, {numel}, at::kFloat);
  return buffer;
}

void swap_elements(const Tensor& a, const Tensor& b) {
  for (int64_t begin = 0; begin < a.numel(); begin += kSwapElements) {
    const int64_t size = std::min(kSwapElements, a.numel() - begin);
    Tensor some_of_a = a.narrow(0, begin, size), some_of_b = b.narrow(0, begin, size);
    const Tensor waiting = some_of_a.clone();
    some_of_a.copy_(some_of_b);
    some_of_b.copy_(waiting);
  }
}

}  // namespace

WeightAverage::WeightAverage(const std::vector<OwnedRange>& ranges, const ParamRules& rules, bool replaces) {
  for (size_t u = 0; u < ranges.size(); ++u) {
    const OwnedRange& range = ranges[u];
    std::vector<Run> runs;
    StateBuffer buffer = make_buffer(range, rules[u], runs);
    Tensor kept;
    if (replaces && !runs.empty() && range.weights().scalar_type() != at::kFloat)
      kept = flat_buffer(buffer.flat.numel(), range.weights().scalar_type(), buffer.flat.device());
    for (const Run& run : runs) {
      Part part{.average = buffer.flat.narrow(0, run.at, run.size),
                .weights = range.weights().narrow(0, run.begin, run.size),
                .params = {},
                .kept = {}};
      part.params = range.has_own_master() ? range.params.narrow(0, run.begin, run.size) : part.weights;
      if (kept.defined()) part.kept = kept.narrow(0, run.at, run.size);
      parts_.push_back(std::move(part));
    }
    if (!runs.empty()) state_.push_back(std::move(buffer));
  }
}

void WeightAverage::begin() {
  for (Part& part : parts_) part.average.copy_(part.weights);
  has_begun_ = true;
}

// The two shares are rounded to fp32 together, so that they add up to 1: else the average of constant
// weights would drift away from them, by 0.03% for a decay of 0.9999.
void WeightAverage::update(double decay) {
  const double rest = 1.0 - static_cast<double>(static_cast<float>(decay));
  for (Part& part : parts_) add_update(-rest, rest, {.params = part.average}, part.weights);
}

void WeightAverage::fill(const std::function<void(const std::vector<StateBuffer>&)>& write) {
  write(state_);
  has_begun_ = true;
}

std::vector<StateBuffer>& WeightAverage::state() { return has_begun_ ? state_ : none_; }

void WeightAverage::put_in_place() {
  for (Part& part : parts_) {
    if (part.weights.is_same(part.params) && !part.kept.defined()) {
      swap_elements(part.params, part.average);
      continue;
    }
    if (part.kept.defined()) part.kept.copy_(part.weights);
    part.params.copy_(part.average);
  }
}

void WeightAverage::put_back() {
  for (Part& part : parts_) {
    if (part.weights.is_same(part.params) && !part.kept.defined())
      swap_elements(part.params, part.average);
    else
      part.params.copy_(part.kept.defined() ? part.kept : part.weights);
  }
}

}  // namespace tycho
