// Joins the views of two units.
#include "trainer/models/block_units.h"

#include <algorithm>

namespace tycho {
namespace {

/// Puts adapters after the first `count` of a unit's own views.
void join(const Views& own, size_t count, const Views& adapters, Views& both) {
  const auto end = own.begin() + static_cast<std::ptrdiff_t>(count);
  both.assign(own.begin(), end);
  both.insert(both.end(), adapters.begin(), adapters.end());
  both.insert(both.end(), end, own.end());
}

}  // namespace

bool has_gradients(const Views& grads) {
  return std::any_of(grads.begin(), grads.end(), [](const Tensor& grad) { return grad.defined(); });
}

BlockUnits::BlockUnits(const ModelLayout& layout, UnitStore& units)
    : units_(units), adapters_(static_cast<size_t>(layout.num_blocks), -1) {
  for (size_t u = 0; u < layout.units.size(); ++u)
    if (const int adapts = layout.units[u].adapts; adapts >= 0)
      adapters_[static_cast<size_t>(adapts) - 1] = static_cast<int>(u);
}

const Views& BlockUnits::acquire(int64_t block, Pass pass) {
  const Views& params = units_.acquire(own(block), pass);
  if (adapters(block) < 0) return params;
  join(params, num_views(block), units_.acquire(adapters(block), pass), params_);
  return params_;
}

void BlockUnits::release(int64_t block, Pass pass) {
  if (adapters(block) >= 0) units_.release(adapters(block), pass);
  units_.release(own(block), pass);
}

Views& BlockUnits::grads(int64_t block) {
  Views& grads = units_.grads(own(block));
  if (adapters(block) < 0) return grads;
  join(grads, num_views(block), units_.grads(adapters(block)), grads_);
  return grads_;
}

bool BlockUnits::has_gradients(int64_t block) {
  return tycho::has_gradients(units_.grads(own(block))) ||
         (adapters(block) >= 0 && tycho::has_gradients(units_.grads(adapters(block))));
}

void BlockUnits::reduce(int64_t block, bool last) {
  for (const int unit : {own(block), adapters(block)})
    if (unit >= 0 && tycho::has_gradients(units_.grads(unit))) units_.reduce(unit, last);
}

}  // namespace tycho
