// Takes a rank's share of a unit.
#include "trainer/units/owned_range.h"

namespace tycho {

OwnedRange own_range(const GatheredUnit& unit, int64_t begin, int64_t end, UnitUse use) {
  OwnedRange range{
      .layout = unit.layout(), .begin = begin, .end = end, .extents = unit.layout().extents_in(begin, end)};
  range.params = unit.flat_params().narrow(0, begin, end - begin);
  if (use == UnitUse::kInfer) return range;
  if (unit.flat_grads().defined()) range.grads = unit.flat_grads().narrow(0, begin, end - begin);
  const bool fp32 = range.params.scalar_type() == at::kFloat;
  range.rounds_stochastically = use == UnitUse::kTrainStochastic && !fp32;
  range.master = fp32 || use != UnitUse::kTrain ? range.params
                                                : flat_buffer(end - begin, at::kFloat, range.params.device());
  return range;
}

OwnedRange own_unit(const GatheredUnit& unit, UnitUse use) {
  return own_range(unit, 0, unit.layout().numel(), use);
}

void OwnedRange::refresh_from_master() const {
  if (has_own_master()) Tensor(params).copy_(master);
}

}  // namespace tycho
