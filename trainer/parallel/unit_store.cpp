// Stores that keep whole units, gradients on their way from rank to rank, and the choice among all stores.
#include "trainer/parallel/unit_store.h"

#include <utility>

#include "trainer/parallel/sharded_units.h"

namespace tycho {

LocalUnits::LocalUnits(const std::vector<UnitSpec>& specs, at::ScalarType dtype, const at::Device& device,
                       UnitUse use, PartialGradients partial)
    : partial_(std::move(partial)) {
  units_.reserve(specs.size());
  for (const UnitSpec& spec : specs) {
    units_.emplace_back(UnitLayout(spec), dtype, device, use);
    owned_.push_back(own_unit(units_.back(), use));
  }
}

void LocalUnits::reduce(int unit, bool last) {
  if (last) partial_.sum(unit, at(unit).grads());
}

void ReplicatedUnits::reduce(int unit, bool last) {
  if (!last) return;
  LocalUnits::reduce(unit, last);
  Tensor flat = at(unit).flat_grads();
  on_their_way_.push_back(world_.start_all_reduce(flat));
}

void ReplicatedUnits::finish() {
  for (const std::unique_ptr<Pending>& pending : std::exchange(on_their_way_, {})) pending->wait();
}

Tensor UnitStore::param(int unit, size_t i) {
  Tensor view = acquire(unit, Pass::kForward)[i];
  release(unit, Pass::kForward);
  return view;
}

std::unique_ptr<UnitStore> make_unit_store(const std::vector<UnitSpec>& specs, at::ScalarType dtype,
                                           const at::Device& device, UnitUse use, const ShardRules& rules,
                                           UnitGroups groups) {
  PartialGradients partial;
  if (groups.tp != nullptr && groups.tp->size() > 1) partial = PartialGradients(specs, *groups.tp);
  if (groups.owners.size() > 1)
    return std::make_unique<ShardedUnits>(specs, dtype, device, use, rules, groups.owners, groups.replicas,
                                          std::move(partial));
  if (groups.replicas.size() == 1)
    return std::make_unique<LocalUnits>(specs, dtype, device, use, std::move(partial));
  return std::make_unique<ReplicatedUnits>(specs, dtype, device, use, groups.replicas, std::move(partial));
}

}  // namespace tycho
