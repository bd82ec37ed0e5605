// Gathers units before their use, and scatters their gradients after it.
#include "trainer/sharding/sharded_units.h"

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/layout/adapters.h"

namespace tycho {

ShardedUnits::ShardedUnits(const std::vector<UnitSpec>& specs, at::ScalarType dtype, const at::Device& device,
                           UnitUse use, const ShardRules& rules, const UnitGroups& groups,
                           PartialGradients partial)
    : rules_(rules),
      cp_(groups.cp),
      partial_(std::move(partial)),
      coded_(specs.size(), groups.tp),
      num_own_units_(static_cast<int>(num_own_units(specs))) {
  const UnitBuffers of_params = param_buffers(specs, rules), of_grads = grad_buffers(specs, rules);
  for (const int64_t elements : of_params.elements)
    param_buffers_.push_back({.flat = flat_buffer(elements, dtype, device)});
  if (use != UnitUse::kInfer)
    for (const int64_t elements : of_grads.elements)
      grad_buffers_.push_back(
          {.flat = flat_buffer(elements, at::kFloat, device),
           .sent = rules.reduce_bf16 ? flat_buffer(elements, at::kBFloat16, device) : Tensor()});
  units_.reserve(specs.size());
  std::vector<Communicator*> all_owners;
  for (const UnitSpec& spec : specs) all_owners.push_back(&groups.of(spec).owners);
  std::vector<std::optional<CodedUnitLayout>> places(specs.size());
  if (dtype == at::kBFloat16) places = CodedUnits::places(specs, all_owners, groups.tp);
  for (size_t u = 0; u < specs.size(); ++u) {
    UnitLayout layout(specs[u]);
    const auto [owners, replicas] = groups.of(specs[u]);
    TYCHO_CHECK(rules.num_ranks % owners.size() == 0,
                "[parallel] expected ranks that share {} to divide {}, got {}", specs[u].name,
                rules.num_ranks, owners.size());
    const int64_t numel = layout.numel(), each = shard_elements(numel, owners.size());
    const int grad_buffer = use == UnitUse::kInfer ? UnitBuffers::kNone : of_grads.of_unit[u];
    const auto part = [&](const Tensor& flat) { return flat.narrow(0, 0, numel); };
    const Tensor whole_params = part(param_buffers_[static_cast<size_t>(of_params.of_unit[u])].flat);
    const Tensor flat_grads =
        grad_buffer == UnitBuffers::kNone ? Tensor() : grad_buffers_[static_cast<size_t>(grad_buffer)].flat;
    const Tensor whole_grads = flat_grads.defined() ? part(flat_grads) : Tensor();
    const Tensor leaf =
        flat_grads.defined() ? flat_grads.narrow(0, 0, leaf_elements(numel, rules)) : Tensor();
    units_.push_back({.layout = layout,
                      .owners = owners,
                      .replicas = replicas,
                      .params = flat_buffer(each, dtype, device),
                      .grads = whole_grads.defined() ? flat_buffer(each, at::kFloat, device) : Tensor(),
                      .gathered = GatheredUnit(layout, whole_params, whole_grads),
                      .param_buffer = of_params.of_unit[u],
                      .grad_buffer = grad_buffer,
                      .tree = TreeSum(rules.tree, leaf)});
    const ShardRange range = shard_range(numel, owners.size(), owners.rank());
    const auto own = [&](const Tensor& flat) {
      return flat.defined() ? flat.narrow(0, 0, range.size()) : Tensor();
    };
    owned_.push_back(
        own_shard(layout, range.begin, range.end, own(units_.back().params), own(units_.back().grads), use));
    if (places[u])
      coded_.add(u,
                 CodedUnit(layout, *places[u], owners.rank(), units_.back().params,
                           param_buffers_[static_cast<size_t>(of_params.of_unit[u])].flat),
                 owners);
    across_.emplace_back(replicas.size() > 1 ? units_.back().grads : Tensor(), rules.reduce_bf16);
  }
  lowest_trained_ = static_cast<int>(lowest_trained_unit(specs));
  if (rules.register_buffers) register_buffers();
}

// Units of other owners use the same buffers unregistered.
void ShardedUnits::register_buffers() {
  Communicator& owners = units_.front().owners;
  const auto keep = [&](Communicator& group, const Tensor& x) {
    registrations_.push_back(group.registered(x));
  };
  for (const ParamBuffer& buffer : param_buffers_) keep(owners, buffer.flat);
  for (GradBuffer& buffer : grad_buffers_) keep(owners, sent_of(buffer));
  for (const Unit& unit : units_) keep(unit.owners, unit.params), keep(unit.owners, unit.grads);
  for (int u = 0; u < num_units(); ++u)
    if (const CodedUnit* coded = coded_.of(u)) keep(at(u).owners, coded->sent());
  for (size_t u = 0; u < units_.size(); ++u) keep(units_[u].replicas, across_[u].sent());
}

Tensor ShardedUnits::span(const Tensor& flat, const Unit& unit) const {
  return flat.narrow(0, 0, unit.params.numel() * unit.owners.size());
}

const Views& ShardedUnits::acquire(int unit, Pass pass) {
  ParamBuffer& buffer = params_of(unit);
  start_gather({unit}, pass);
  ++buffer.num_holders;  // before the next unit, which may want the same buffer
  start_gather(next_after(unit, pass), pass);
  wait_for(buffer);
  return buffer.coded != nullptr ? buffer.coded->params() : at(unit).gathered.params();
}

void ShardedUnits::release(int unit, Pass) { --params_of(unit).num_holders; }

std::vector<GroupedCall> ShardedUnits::gathers_of(Unit& unit) {
  const ParamBuffer& buffer = param_buffers_[static_cast<size_t>(unit.param_buffer)];
  if (buffer.coded != nullptr) return buffer.coded->gathers();
  return {GroupedCall::all_gather(span(buffer.flat, unit), unit.params)};
}

void ShardedUnits::start_gather(const std::vector<int>& units, Pass pass) {
  std::vector<Unit*> left;
  for (const int unit : units) {
    ParamBuffer& buffer = params_of(unit);
    CodedUnit* const coded = pass == Pass::kGeneration ? nullptr : coded_.of(unit);
    if (buffer.unit == unit && buffer.version == version_ && buffer.coded == coded) continue;
    TYCHO_CHECK(buffer.num_holders == 0, "[parallel] {} is wanted while {} is in use",
                at(unit).layout.spec().name, at(buffer.unit).layout.spec().name);
    wait_for(buffer);
    buffer.unit = unit;
    buffer.version = version_;
    buffer.coded = coded;
    if (coded != nullptr) coded_.make(version_);
    left.push_back(&at(unit));
  }
  while (!left.empty()) {  // together where ranks are the same
    const auto others = std::stable_partition(
        left.begin(), left.end(), [&](const Unit* unit) { return &unit->owners == &left.front()->owners; });
    std::vector<GroupedCall> calls;
    std::vector<ParamBuffer*> of_call;
    for (auto unit = left.begin(); unit != others; ++unit)
      for (const GroupedCall& call : gathers_of(**unit)) {
        calls.push_back(call);
        of_call.push_back(&param_buffers_[static_cast<size_t>((*unit)->param_buffer)]);
      }
    const ForUnit noted(left.front()->layout.spec().name);
    auto arrivals = left.front()->owners.start_together(calls);
    for (size_t i = 0; i < calls.size(); ++i) of_call[i]->arrivals.push_back(std::move(arrivals[i]));
    left.erase(left.begin(), others);
  }
}

void ShardedUnits::wait_for(ParamBuffer& buffer) {
  if (buffer.arrivals.empty()) return;
  for (const auto& arrival : std::exchange(buffer.arrivals, {})) arrival->wait();
  if (buffer.coded != nullptr) buffer.coded->place();
}

// Follows the order in which models use units. A tied head uses the first unit once more, after all others.
std::vector<int> ShardedUnits::next_after(int unit, Pass pass) {
  std::vector<int> units;
  const auto add = [&](int next) {
    const bool is_here = layout(next).numel() > 0;  // else it is another stage's
    if (is_here && params_of(next).num_holders == 0) units.push_back(next);
  };
  const int head = num_own_units_ - 1;
  if (unit > head) {  // adapters, in the order of their blocks
    if (pass != Pass::kBackward && unit + 1 < num_units()) add(unit + 1);
    if (pass == Pass::kBackward && unit > num_own_units_ && layout(unit - 1).spec().adapts >= lowest_trained_)
      add(unit - 1);
    return units;
  }
  const bool of_head = rules_.tied && unit == 0 && params_of(head).num_holders > 0;
  if (pass == Pass::kBackward && unit > std::max(lowest_trained_, 1)) add(unit - 1);
  if (pass != Pass::kBackward && unit < head && !of_head) add(unit + 1);
  if (pass != Pass::kBackward && unit + 1 == head && rules_.tied) add(0);
  return units;
}

Views& ShardedUnits::grads(int unit) {
  Unit& own = at(unit);
  if (own.grad_buffer == UnitBuffers::kNone) return own.gathered.grads();
  GradBuffer& buffer = grads_of(unit);
  if (buffer.unit == unit && !buffer.reduction) return own.gathered.grads();
  settle(buffer);
  buffer.unit = unit;
  return own.gathered.grads();
}

void ShardedUnits::begin_step() {
  for (GradBuffer& buffer : grad_buffers_) {
    if (buffer.reduction) std::exchange(buffer.reduction, nullptr)->wait();
    buffer.unit = UnitBuffers::kNone;
  }
  for (Unit& unit : units_) {
    unit.tree.restart();
    unit.has_sum = false;
  }
}

void ShardedUnits::reduce(int unit, bool last) {
  Unit& own = at(unit);
  const bool has_leaves = rules_.tree.leaves > 1;
  if (has_leaves) add_leaf(unit, last);
  if (rules_.keep_grads && !last) return;
  if (!has_leaves) partial_.sum(unit, own.gathered.grads());
  GradBuffer& buffer = grads_of(unit);
  const Tensor whole = span(sent_of(buffer), own);
  if (rules_.reduce_bf16) whole.copy_(span(buffer.flat, own));
  // Later micro-batches are reduced in place and then added, and so are all gradients exchanged as bf16.
  const bool in_place = own.has_sum || rules_.reduce_bf16;
  const Tensor to =
      in_place ? whole.narrow(0, own.owners.rank() * own.grads.numel(), own.grads.numel()) : own.grads;
  buffer.last = last;
  const ForUnit noted(own.layout.spec().name);
  buffer.reduction = own.owners.start(GroupedCall::reduce_scatter(to, whole));
}

// Along cp each rank adds up its own part of the leaves. The parts of other ranks do not change the sum over
// all owners, because x + -0 is x for any x.
void ShardedUnits::add_leaf(int unit, bool last) {
  Unit& own = at(unit);
  partial_.sum(unit, own.gathered.grads());
  if (rules_.cp == 1) {
    Tensor grads = own.gathered.flat_grads();
    return own.tree.add(grads);
  }
  const Tensor whole = span(grads_of(unit).flat, own);
  const int64_t each = whole.numel() / rules_.cp, begin = cp_->rank() * each;
  Tensor leaf = whole.narrow(0, begin, each);
  const ForUnit noted(own.layout.spec().name);
  cp_->reduce_scatter(leaf, whole);
  own.tree.add(leaf);
  if (!last) return;
  whole.narrow(0, 0, begin).fill_(-0.0);
  whole.narrow(0, begin + each, whole.numel() - begin - each).fill_(-0.0);
}

void ShardedUnits::settle(GradBuffer& buffer) {
  if (!buffer.reduction) return;
  std::exchange(buffer.reduction, nullptr)->wait();
  Unit& own = at(buffer.unit);
  const int64_t each = own.grads.numel();
  const Tensor sum = sent_of(buffer).narrow(0, own.owners.rank() * each, each);
  if (std::exchange(own.has_sum, true))
    own.grads.add_(sum);
  else if (rules_.reduce_bf16)
    own.grads.copy_(sum);
  const ForUnit noted(own.layout.spec().name);
  if (buffer.last) across_[static_cast<size_t>(buffer.unit)].start(own.replicas);
}

void ShardedUnits::finish() {
  for (GradBuffer& buffer : grad_buffers_) {
    settle(buffer);
    buffer.unit = UnitBuffers::kNone;
  }
  for (GradientSum& sum : across_) sum.finish();
  for (Unit& unit : units_) unit.has_sum = false;
  forget_gathered();
}

// Callers may change the ranges.
std::vector<OwnedRange>& ShardedUnits::owned() {
  forget_gathered();
  return owned_;
}

void ShardedUnits::forget_gathered() {
  for (ParamBuffer& buffer : param_buffers_) wait_for(buffer);
  ++version_;
}

Tensor ShardedUnits::param(int unit, size_t i) {
  start_gather({unit}, Pass::kGeneration);
  wait_for(params_of(unit));
  return at(unit).gathered.params()[i].clone();
}

Tensor ShardedUnits::grad(int unit, size_t i) {
  Unit& own = at(unit);
  if (!own.gathered.grads()[i].defined()) return {};
  Tensor whole = flat_buffer(own.grads.numel() * own.owners.size(), at::kFloat, own.grads.device());
  own.owners.all_gather(whole, own.grads);
  const FlatView& view = own.layout.views()[i];
  return whole.narrow(0, view.begin, numel(view.shape)).view(view.shape).clone();
}

Tensor ShardedUnits::whole(int unit, const Tensor& owned) {
  const Unit& own = at(unit);
  const int64_t each = own.params.numel();
  Tensor padded = flat_buffer(each, at::kFloat, owned.device());
  padded.zero_();
  padded.narrow(0, 0, owned.numel()).copy_(owned);
  Tensor all = flat_buffer(each * own.owners.size(), at::kFloat, owned.device());
  own.owners.all_gather(all, padded);
  return all.narrow(0, 0, own.layout.numel());
}

}  // namespace tycho
