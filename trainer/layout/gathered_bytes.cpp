// Follows the order in which a model uses its units.
#include "trainer/layout/gathered_bytes.h"

#include <algorithm>
#include <optional>

#include "trainer/layout/adapters.h"
#include "trainer/layout/coded_unit.h"

namespace tycho {

int64_t gathered_bytes(const std::vector<UnitSpec>& units, const ShardRules& rules, int64_t micro_batches,
                       int64_t bytes_each) {
  const UnitBuffers buffers = param_buffers(units, rules);
  std::vector<size_t> held(buffers.elements.size(), units.size());
  int64_t sum = 0;
  const auto use = [&](size_t unit) {
    size_t& holds = held[static_cast<size_t>(buffers.of_unit[unit])];
    if (holds == unit || units[unit].params.empty()) return;
    holds = unit;
    const auto coded = bytes_each == 2 ? coded_unit_layout(units[unit], rules.num_ranks) : std::nullopt;
    sum += rules.num_ranks *
           (coded ? coded->bytes_each() : shard_elements(units[unit].numel(), rules.num_ranks) * bytes_each);
  };
  const size_t lowest_trained = lowest_trained_unit(units), own = num_own_units(units);
  for (int64_t i = 0; i < micro_batches; ++i) {
    for (size_t u = 0; u < units.size(); ++u) use(u);
    if (rules.tied) use(0);
    for (size_t u = own - 1; u-- > std::max<size_t>(lowest_trained, 1);) use(u);
    for (size_t u = units.size(); u-- > own;)
      if (static_cast<size_t>(units[u].adapts) >= lowest_trained) use(u);
  }
  return sum;
}

}  // namespace tycho
