// Flat buffers of whole units, and their views.
#include "trainer/sharding/gathered_unit.h"

#include <algorithm>

#include "trainer/sharding/arena.h"

namespace tycho {

Tensor flat_buffer(int64_t numel, at::ScalarType dtype, const at::Device& device) {
  const int64_t num_bytes = numel * static_cast<int64_t>(at::elementSize(dtype));
  return arena_view(make_arena((num_bytes + 4095) / 4096 * 4096, device), 0, {numel}, dtype);
}

GatheredUnit::GatheredUnit(UnitLayout layout, at::ScalarType dtype, const at::Device& device, UnitUse use)
    : layout_(std::move(layout)) {
  params_ = flat_buffer(layout_.numel(), dtype, device);
  if (use != UnitUse::kInfer && !spec().frozen()) grads_ = flat_buffer(layout_.numel(), at::kFloat, device);
  make_all_views(use != UnitUse::kInfer);
}

GatheredUnit::GatheredUnit(UnitLayout layout, Tensor params, Tensor grads)
    : layout_(std::move(layout)), params_(std::move(params)), grads_(std::move(grads)) {
  make_all_views(/*has_grads=*/true);
}

void GatheredUnit::make_all_views(bool has_grads) {
  param_views_ = make_views(params_);
  if (!has_grads) return;
  if (grads_.defined()) {
    grad_views_ = make_views(grads_);
    leave_out_frozen(grad_views_);
  } else {
    grad_views_.resize(param_views_.size());
  }
}

Views GatheredUnit::make_views(const Tensor& flat) const {
  Views views;
  for (const FlatView& view : layout_.views())
    views.push_back(flat.narrow(0, view.begin, numel(view.shape)).view(view.shape));
  return views;
}

void GatheredUnit::leave_out_frozen(Views& grads) const {
  const std::vector<ParamSpec>& params = spec().params;
  for (size_t i = 0; i < params.size(); ++i)
    if (params[i].frozen) grads[i] = Tensor();
  for (size_t k = 0; k < spec().stacks.size(); ++k) {
    const auto first = params.begin() + spec().stacks[k].first;
    if (std::all_of(first, first + spec().stacks[k].count, [](const ParamSpec& p) { return p.frozen; }))
      grads[params.size() + k] = Tensor();
  }
}

at::ScalarType compute_dtype(Precision precision) {
  return precision == Precision::kBf16 ? at::kBFloat16 : at::kFloat;
}

}  // namespace tycho
