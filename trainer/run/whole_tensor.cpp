// Parts are gathered in rooms of one size, for they may differ by a row.
#include "trainer/run/whole_tensor.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "trainer/layout/tp_parts.h"

namespace tycho {
namespace {

Tensor whole_of(const ParallelRegion& region, const ParamSpec& spec, const Tensor& part) {
  if (!spec.part) return part;
  const auto of_rank = [&](int64_t rank) { return tp_part(spec, {region.shape().size, rank}); };
  const ParamSpec first = of_rank(0);  // none has more
  Tensor room = at::zeros({numel(first.shape)}, part.options());
  room.narrow(0, 0, part.numel()).copy_(part.reshape({-1}));
  const Tensor all = region.gathered(room);
  Tensor whole = at::empty(spec.part->whole, part.options());
  for (int64_t rank = 0; rank < region.shape().size; ++rank) {
    const ParamSpec its = of_rank(rank);
    const Tensor values = all[rank].narrow(0, 0, numel(its.shape)).view(its.shape);
    for (const ParamPart::Run& run : its.part->runs)
      whole.narrow(its.part->dim, run.there, run.size)
          .copy_(values.narrow(its.part->dim, run.here, run.size));
  }
  return whole;
}

const ParamSpec& spec_of(const UnitStore& units, size_t unit, size_t i) {
  return units.layout(static_cast<int>(unit)).spec().params[i];
}

}  // namespace

Tensor whole_param(UnitStore& units, const ParallelRegion& region, size_t unit, size_t i) {
  return whole_of(region, spec_of(units, unit, i), units.param(static_cast<int>(unit), i));
}

Tensor whole_grad(UnitStore& units, const ParallelRegion& region, size_t unit, size_t i) {
  const Tensor part = units.grad(static_cast<int>(unit), i);
  return part.defined() ? whole_of(region, spec_of(units, unit, i), part) : part;
}

}  // namespace tycho
