// Counts of one micro-batch, times those of a step.
#include "trainer/plan/region_traffic.h"

#include "trainer/layout/cp_part.h"
#include "trainer/layout/decoder_spec.h"
#include "trainer/layout/tp_traffic.h"
#include "trainer/optim/param_rules.h"

namespace tycho {

std::vector<ByteItem> region_traffic(const TrainConfig& config, const ModelLayout& layout, const TpShape& tp,
                                     const ShardRules& rules, BatchShape shape, int64_t micro_batches) {
  const int64_t compute_bytes = config.precision == Precision::kBf16 ? 2 : 4, cp = config.parallel.cp;
  const DecoderSpec spec = decoder_spec(config.model);
  const std::vector<UnitSpec> units =
      with_frozen(layout.units, param_rules(config.optimizer, config.param_groups, layout.units));
  std::vector<ByteItem> items;
  if (tp.size > 1) {
    const TpTraffic one =
        tp_traffic(spec, units, {shape.batch, shape.seq / cp}, config.recompute, compute_bytes, tp);
    const int64_t times = rules.num_ranks > 1 && !rules.keep_grads ? micro_batches : 1;
    items.push_back({"tp", one.activations * micro_batches, "activations, and gradients of them"});
    items.push_back({"tp", one.losses * micro_batches + tp_gradient_bytes(units, tp) * times,
                     "losses, gradients summed"});
  }
  if (cp > 1)
    items.push_back(
        {"cp",
         cp_traffic(tp_spec(spec, tp), units, shape, config.recompute, compute_bytes, cp) * micro_batches,
         "keys and values, and gradients of them"});
  return items;
}

}  // namespace tycho
