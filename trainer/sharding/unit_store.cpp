// Stores of whole units, sums of gradients, and the choice of a store.
#include "trainer/sharding/unit_store.h"

#include <utility>

#include "trainer/sharding/sharded_units.h"

namespace tycho {

GradientSum::GradientSum(const Tensor& grads, bool bf16) : grads_(grads) {
  if (grads.defined() && bf16) sent_ = flat_buffer(grads.numel(), at::kBFloat16, grads.device());
}

void GradientSum::start(Communicator& ranks) {
  if (!grads_.defined()) return;
  if (sent_.defined()) sent_.copy_(grads_);
  pending_ = ranks.start(GroupedCall::all_reduce(sent()));
}

void GradientSum::finish() {
  if (!pending_) return;
  std::exchange(pending_, nullptr)->wait();
  if (sent_.defined()) grads_.copy_(sent_);
}

LocalUnits::LocalUnits(const std::vector<UnitSpec>& specs, at::ScalarType dtype, const at::Device& device,
                       UnitUse use, PartialGradients partial, const ShardRules& rules)
    : partial_(std::move(partial)), rules_(rules), has_leaves_(rules.tree.leaves > 1) {
  units_.reserve(specs.size());
  for (const UnitSpec& spec : specs) {
    units_.emplace_back(UnitLayout(spec), dtype, device, use);
    owned_.push_back(own_unit(units_.back(), use));
    trees_.emplace_back(rules.tree, units_.back().flat_grads());
  }
}

Tensor LocalUnits::lent(int unit) {
  const Tensor& grads = at(unit).flat_grads();
  return grads.defined() && lent_elements(layout(unit).spec(), rules_) > 0 ? grads.view(at::kByte) : Tensor();
}

void LocalUnits::begin_step() {
  for (TreeSum& tree : trees_) tree.restart();
}

void LocalUnits::reduce(int unit, bool last) {
  if (has_leaves_ || last) partial_.sum(unit, at(unit).grads());
  Tensor grads = at(unit).flat_grads();
  trees_[static_cast<size_t>(unit)].add(grads);
}

ReplicatedUnits::ReplicatedUnits(const std::vector<UnitSpec>& specs, at::ScalarType dtype,
                                 const at::Device& device, UnitUse use, const ShardRules& rules,
                                 const UnitGroups& groups, PartialGradients partial)
    : LocalUnits(specs, dtype, device, use, std::move(partial), rules) {
  for (const GatheredUnit& unit : gathered()) {
    replicas_.push_back(&groups.of(unit.layout().spec()).replicas);
    sums_.emplace_back(unit.flat_grads(), rules.reduce_bf16);
    if (rules.register_buffers) registrations_.push_back(replicas_.back()->registered(sums_.back().sent()));
  }
}

void ReplicatedUnits::reduce(int unit, bool last) {
  LocalUnits::reduce(unit, last);
  if (!last) return;
  const ForUnit noted(layout(unit).spec().name);
  sums_[static_cast<size_t>(unit)].start(*replicas_[static_cast<size_t>(unit)]);
}

void ReplicatedUnits::finish() {
  for (GradientSum& sum : sums_) sum.finish();
}

Tensor UnitStore::param(int unit, size_t i) {
  Tensor view = acquire(unit, Pass::kForward)[i];
  release(unit, Pass::kForward);
  return view;
}

std::unique_ptr<UnitStore> make_unit_store(const std::vector<UnitSpec>& specs, at::ScalarType dtype,
                                           const at::Device& device, UnitUse use, const ShardRules& rules,
                                           const UnitGroups& groups) {
  PartialGradients partial;
  if (groups.tp != nullptr && groups.tp->size() > 1) partial = PartialGradients(specs, *groups.tp);
  bool has_owners = false, has_replicas = false;
  for (const UnitSpec& spec : specs) {
    const UnitGroup group = groups.of(spec);
    has_owners |= group.owners.size() > 1, has_replicas |= group.replicas.size() > 1;
  }
  if (has_owners)
    return std::make_unique<ShardedUnits>(specs, dtype, device, use, rules, groups, std::move(partial));
  if (!has_replicas)
    return std::make_unique<LocalUnits>(specs, dtype, device, use, std::move(partial), rules);
  return std::make_unique<ReplicatedUnits>(specs, dtype, device, use, rules, groups, std::move(partial));
}

}  // namespace tycho
