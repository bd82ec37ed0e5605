// Counts of one micro-batch, times those of a step.
#include "trainer/plan/region_traffic.h"

#include <fmt/format.h>

#include "trainer/families/config.h"
#include "trainer/families/decoder_spec.h"
#include "trainer/layout/cp_part.h"
#include "trainer/layout/param_rules.h"
#include "trainer/layout/tp_traffic.h"

namespace tycho {
namespace {

/// Returns the bytes of other ranks' gradients that a rank receives for a micro-batch; it keeps a part of
/// them.
int64_t leaf_bytes(const std::vector<UnitSpec>& units, const ShardRules& rules) {
  int64_t sum = 0;
  for (const UnitSpec& unit : units)
    if (!unit.frozen()) sum += leaf_elements(unit.numel(), rules) * 4 * (rules.cp - 1);
  return sum;
}

}  // namespace

CpShape cp_shape(const ParallelConfig& parallel) {
  return {parallel.cp, 0, parallel.cp > 1 && parallel.cp_attention == CpAttention::kRing};
}

std::vector<ByteItem> region_traffic(const TrainConfig& config, const ModelLayout& whole,
                                     const RankShare& share, const TpShape& tp, BatchShape shape,
                                     int64_t micro_batches) {
  const int64_t compute_bytes = config.precision == Precision::kBf16 ? 2 : 4;
  const CpShape cp = cp_shape(config.parallel);
  const DecoderSpec spec = decoder_spec(config.model);
  const ParamRules params = param_rules(config.optimizer, config.param_groups, whole.units);
  const std::vector<UnitSpec> units =
      with_frozen(tp_units(whole.units, tp, config.device == DeviceKind::kCuda), params);
  std::vector<ByteItem> items;
  if (tp.size > 1) {
    const TpTraffic one = tp_traffic(spec, units, {shape.batch, shape.seq / cp.size}, config.recompute,
                                     compute_bytes, tp, share.part);
    const bool every_time =
        share.rules.tree.leaves > 1 || (share.rules.num_ranks > 1 && !share.rules.keep_grads);
    const int64_t times = every_time ? micro_batches : 1;
    const int64_t gradients = tp_gradient_bytes(with_frozen(share.layout.units, params), tp);
    items.push_back({"tp", one.activations * micro_batches, "activations, and gradients of them"});
    items.push_back({"tp", one.losses * micro_batches + gradients * times, "losses, gradients summed"});
  }
  if (cp.size > 1) {
    const int64_t one =
        cp_traffic(tp_spec(spec, tp), units, shape, config.recompute, compute_bytes, cp, share.part);
    items.push_back({"cp", one * micro_batches,
                     cp.ring ? "keys and values on a ring, gradients in fp32"
                             : "keys and values, and gradients of them"});
    if (share.rules.tree.leaves > 1)
      items.push_back({"cp", leaf_bytes(with_frozen(share.layout.units, params), share.rules) * micro_batches,
                       fmt::format("gradients summed, {} times", micro_batches)});
  }
  return items;
}

}  // namespace tycho
