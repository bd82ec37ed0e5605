// Takes a rank's share of a unit.
#include "trainer/sharding/owned_range.h"

#include <algorithm>

namespace tycho {
namespace {

/// Sets a buffer to 0 if its unit has zero rows: these are in no extent, so nothing else writes them.
Tensor with_zero_rows(const UnitLayout& layout, Tensor flat) {
  const std::vector<ParamSpec>& params = layout.spec().params;
  if (std::any_of(params.begin(), params.end(), [](const ParamSpec& p) { return p.zero_rows > 0; }))
    flat.zero_();
  return flat;
}

}  // namespace

OwnedRange own_shard(const UnitLayout& layout, int64_t begin, int64_t end, const Tensor& params,
                     const Tensor& grads, UnitUse use) {
  OwnedRange range{.layout = layout, .begin = begin, .end = end, .extents = layout.extents_in(begin, end)};
  range.params = with_zero_rows(layout, params);
  if (use == UnitUse::kInfer) return range;
  range.grads = grads;
  const bool fp32 = params.scalar_type() == at::kFloat;
  range.rounds_stochastically = use == UnitUse::kTrainStochastic && !fp32;
  range.master = fp32 || use != UnitUse::kTrain || layout.spec().base
                     ? params
                     : with_zero_rows(layout, flat_buffer(end - begin, at::kFloat, params.device()));
  return range;
}

OwnedRange own_range(const GatheredUnit& unit, int64_t begin, int64_t end, UnitUse use) {
  const auto part = [&](const Tensor& flat) {
    return flat.defined() ? flat.narrow(0, begin, end - begin) : Tensor();
  };
  return own_shard(unit.layout(), begin, end, part(unit.flat_params()), part(unit.flat_grads()), use);
}

OwnedRange own_unit(const GatheredUnit& unit, UnitUse use) {
  return own_range(unit, 0, unit.layout().numel(), use);
}

void OwnedRange::refresh_from_master() const {
  if (has_own_master()) Tensor(params).copy_(master);
}

}  // namespace tycho
