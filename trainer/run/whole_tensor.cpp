// Parts are gathered in buffers of equal size, because they may differ by a row.
#include "trainer/run/whole_tensor.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "trainer/layout/model_layout.h"
#include "trainer/layout/stages.h"
#include "trainer/layout/tp_parts.h"
#include "trainer/layout/unit_layout.h"
#include "trainer/sharding/gathered_unit.h"
#include "trainer/sharding/owned_range.h"

namespace tycho {
namespace {

Tensor whole_of(const ParallelRegion& region, const ParamSpec& spec, const Tensor& part) {
  if (!spec.part) return part;
  const auto of_rank = [&](int64_t rank) { return tp_part(spec, {region.shape().size, rank}); };
  const ParamSpec first = of_rank(0);  // rank 0 has the largest part
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

/// Copies the part of parameter i of the range that a buffer holds.
void copy_extents(const StateBuffer& buffer, const OwnedRange& range, size_t i, Tensor& owned) {
  for (const Extent& there : range.extents)
    for (const Extent& here : buffer.extents)
      if (there.param == i && here.spec == there.spec && here.first == there.first)
        owned.narrow(0, there.begin, there.size()).copy_(buffer.flat.narrow(0, here.begin, here.size()));
}

}  // namespace

Tensor WholeTensors::of_stage(size_t unit, size_t i, at::ScalarType dtype,
                              const std::function<Tensor()>& read) const {
  const auto whole = [&] {
    const Tensor part = read();
    const UnitLayout& layout = units_.layout(static_cast<int>(unit));
    return part.defined() ? whole_of(region_, layout.spec().params[i], part) : part;
  };
  if (!stage_.is_shared()) return whole();
  const int64_t owner = stage_of_unit(config_, static_cast<int64_t>(unit));
  const bool is_here = stage_.part(0).stage == owner;
  Tensor tensor = is_here ? whole() : Tensor();
  if (stage_.least(!is_here || tensor.defined() ? 1 : 0) == 0) return {};
  if (is_here) {
    tensor = tensor.clone();
  } else {
    const Shape shape = model_layout(config_.model).units[unit].params[i].shape;
    tensor = at::empty(shape, units_.owned().front().params.options().dtype(dtype));
  }
  stage_.share(tensor, owner);
  return tensor;
}

Tensor WholeTensors::param(size_t unit, size_t i) const {
  return of_stage(unit, i, compute_dtype(config_.precision),
                  [&] { return units_.param(static_cast<int>(unit), i); });
}

Tensor WholeTensors::grad(size_t unit, size_t i) const {
  return of_stage(unit, i, at::kFloat, [&] { return units_.grad(static_cast<int>(unit), i); });
}

Tensor WholeTensors::moment(size_t unit, size_t i, const std::string& name,
                            const std::vector<StateBuffer>& state) const {
  return of_stage(unit, i, at::kFloat, [&] {
    const OwnedRange& range = units_.owned()[unit];
    Tensor owned = at::zeros({range.size()}, range.params.options().dtype(at::kFloat));
    for (const StateBuffer& buffer : state)
      if (buffer.name == name) copy_extents(buffer, range, i, owned);
    const UnitLayout& layout = units_.layout(static_cast<int>(unit));
    const FlatView& view = layout.views()[i];
    return units_.whole(static_cast<int>(unit), owned)
        .narrow(0, view.begin, numel(view.shape))
        .view(view.shape);
  });
}

}  // namespace tycho
