// Blocks use two buffers in turn, the units around them one or two more.
#include "trainer/layout/unit_shards.h"

#include <algorithm>

#include "trainer/layout/adapters.h"

namespace tycho {
namespace {

constexpr int64_t kVector = 32;  // elements: 64 bytes of bf16

int64_t divide_up(int64_t n, int64_t by) { return (n + by - 1) / by; }

// Returns the buffer of a unit among the model's own `num_units` and adapters: blocks alternate; the units at
// both ends share one, unless they are used together.
size_t turn_of(size_t unit, size_t num_units, const ShardRules& rules, bool keep) {
  if (keep) return unit;
  if (unit >= num_units) return 4 + unit % 2;  // adapters alternate as their blocks do
  if (unit > 0 && unit + 1 < num_units) return unit % 2;
  return unit == 0 || !rules.tied ? 2 : 3;
}

template <class Needs>
UnitBuffers take_turns(const std::vector<UnitSpec>& units, const ShardRules& rules, bool keep, Needs needs) {
  UnitBuffers buffers{.of_unit = std::vector<int>(units.size(), UnitBuffers::kNone), .elements = {}};
  std::vector<int> of_turn(std::max<size_t>(units.size(), 6), UnitBuffers::kNone);
  for (size_t u = 0; u < units.size(); ++u) {
    if (!needs(units[u])) continue;
    int& buffer = of_turn[turn_of(u, num_own_units(units), rules, keep)];
    if (buffer == UnitBuffers::kNone) {
      buffer = static_cast<int>(buffers.elements.size());
      buffers.elements.push_back(0);
    }
    int64_t& elements = buffers.elements[static_cast<size_t>(buffer)];
    elements = std::max(elements, rules.num_ranks * shard_elements(units[u].numel(), rules.num_ranks));
    buffers.of_unit[u] = buffer;
  }
  return buffers;
}

}  // namespace

int64_t shard_elements(int64_t unit_numel, int64_t num_ranks) {
  return divide_up(divide_up(unit_numel, num_ranks), kVector) * kVector;
}

int64_t leaf_elements(int64_t unit_numel, const ShardRules& rules) {
  if (rules.cp == 1) return unit_numel;
  return shard_elements(unit_numel, rules.num_ranks) * rules.num_ranks / rules.cp;
}

int64_t lent_elements(const UnitSpec& unit, const ShardRules& rules) {
  const bool lends = rules.lends_gradients && std::none_of(unit.params.begin(), unit.params.end(),
                                                           [](const ParamSpec& p) { return p.frozen; });
  return lends ? unit.numel() : 0;
}

ShardRange shard_range(int64_t unit_numel, int64_t num_ranks, int64_t rank) {
  const int64_t each = shard_elements(unit_numel, num_ranks);
  return {std::min(rank * each, unit_numel), std::min((rank + 1) * each, unit_numel)};
}

UnitBuffers param_buffers(const std::vector<UnitSpec>& units, const ShardRules& rules) {
  return take_turns(units, rules, rules.keep_params, [](const UnitSpec&) { return true; });
}

UnitBuffers grad_buffers(const std::vector<UnitSpec>& units, const ShardRules& rules) {
  return take_turns(units, rules, rules.keep_grads, [](const UnitSpec& unit) { return !unit.frozen(); });
}

}  // namespace tycho
