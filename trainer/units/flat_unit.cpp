// The flat buffer of one unit, its gradient twin, its master weights.
#include "trainer/units/flat_unit.h"

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/units/arena.h"

namespace tycho {
namespace {

Tensor flat_buffer(int64_t numel, at::ScalarType dtype, const at::Device& device) {
  const int64_t num_bytes = numel * static_cast<int64_t>(at::elementSize(dtype));
  return arena_view(make_arena((num_bytes + 4095) / 4096 * 4096, device), 0, {numel}, dtype);
}

}  // namespace

FlatUnit::FlatUnit(const UnitSpec& spec, at::ScalarType dtype, const at::Device& device, Use use)
    : spec_(std::make_shared<UnitSpec>(spec)) {
  int64_t begin = 0;
  for (const ParamSpec& param : spec_->params) {
    const int64_t end = begin + numel(param.shape);
    extents_.push_back({begin, end, &param});
    begin = end;
  }
  params_ = flat_buffer(begin, dtype, device);
  param_views_ = make_views(params_);
  if (use == Use::kInfer) return;
  if (spec_->frozen()) {
    grad_views_.resize(param_views_.size());
  } else {
    grads_ = flat_buffer(begin, at::kFloat, device);
    grad_views_ = make_views(grads_);
    leave_out_frozen(grad_views_);
  }
  stochastic_ = use == Use::kTrainStochastic && dtype != at::kFloat;
  master_ = dtype == at::kFloat || use != Use::kTrain ? params_ : flat_buffer(begin, at::kFloat, device);
}

Views FlatUnit::make_views(const Tensor& flat) const {
  Views views;
  for (const Extent& e : extents_)
    views.push_back(flat.narrow(0, e.begin, e.end - e.begin).view(e.spec->shape));
  for (const UnitSpec::Stack& stack : spec_->stacks) {
    Shape stacked = spec_->params[static_cast<size_t>(stack.first)].shape;
    stacked.front() = 0;
    for (int i = stack.first; i < stack.first + stack.count; ++i) {
      const Shape& shape = spec_->params[static_cast<size_t>(i)].shape;
      TYCHO_CHECK(std::equal(shape.begin() + 1, shape.end(), stacked.begin() + 1, stacked.end()),
                  "[units] {} cannot be stacked in {}", spec_->params[static_cast<size_t>(i)].name,
                  spec_->name);
      stacked.front() += shape.front();
    }
    const int64_t begin = extents_[static_cast<size_t>(stack.first)].begin;
    views.push_back(flat.narrow(0, begin, numel(stacked)).view(stacked));
  }
  return views;
}

void FlatUnit::leave_out_frozen(Views& grads) const {
  const std::vector<ParamSpec>& params = spec_->params;
  for (size_t i = 0; i < params.size(); ++i)
    if (params[i].frozen) grads[i] = Tensor();
  for (size_t k = 0; k < spec_->stacks.size(); ++k) {
    const auto first = params.begin() + spec_->stacks[k].first;
    if (std::all_of(first, first + spec_->stacks[k].count, [](const ParamSpec& p) { return p.frozen; }))
      grads[params.size() + k] = Tensor();
  }
}

void FlatUnit::refresh_from_master() {
  if (master_.defined() && !master_.is_same(params_)) params_.copy_(master_);
}

at::ScalarType compute_dtype(Precision precision) {
  return precision == Precision::kBf16 ? at::kBFloat16 : at::kFloat;
}

std::vector<FlatUnit> make_units(const std::vector<UnitSpec>& specs, at::ScalarType dtype,
                                 const at::Device& device, FlatUnit::Use use) {
  std::vector<FlatUnit> units;
  units.reserve(specs.size());
  for (const UnitSpec& spec : specs) units.emplace_back(spec, dtype, device, use);
  return units;
}

}  // namespace tycho
