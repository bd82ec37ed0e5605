// One exchange of magnitudes for all units of the same owners.
#include "trainer/sharding/coded_units.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

namespace tycho {
namespace {

/// Replaces magnitudes by the largest of all ranks; NaN wins.
void share_maxima(Communicator& ranks, Tensor& amax_P) {
  if (ranks.size() == 1) return;
  Tensor all_RP = at::empty({ranks.size(), amax_P.numel()}, amax_P.options());
  ranks.all_gather(all_RP, amax_P);
  amax_P.copy_(all_RP.amax(0));
}

}  // namespace

std::vector<std::optional<CodedUnitLayout>> CodedUnits::places(const std::vector<UnitSpec>& specs,
                                                               const std::vector<Communicator*>& owners,
                                                               Communicator* tp) {
  std::vector<std::optional<CodedUnitLayout>> places;
  for (size_t u = 0; u < specs.size(); ++u) places.push_back(coded_unit_layout(specs[u], owners[u]->size()));
  const bool any = std::any_of(specs.begin(), specs.end(), [](const UnitSpec& spec) {
    return std::any_of(spec.params.begin(), spec.params.end(), [](const ParamSpec& p) { return p.coded; });
  });
  if (!any || tp == nullptr || tp->size() == 1) return places;
  Tensor votes_U = at::ones({static_cast<int64_t>(specs.size())}, at::kLong);
  for (size_t u = 0; u < specs.size(); ++u)
    if (!places[u]) votes_U.mutable_data_ptr<int64_t>()[u] = 0;
  tp->all_reduce(votes_U);
  for (size_t u = 0; u < specs.size(); ++u)
    if (votes_U.const_data_ptr<int64_t>()[u] < tp->size()) places[u].reset();
  return places;
}

void CodedUnits::add(size_t unit, CodedUnit coded, Communicator& owners) {
  units_[unit].emplace(Owned{std::move(coded), &owners});
}

CodedUnit* CodedUnits::of(int unit) {
  std::optional<Owned>& owned = units_[static_cast<size_t>(unit)];
  return owned ? &owned->coded : nullptr;
}

void CodedUnits::make(int64_t version) {
  if (std::exchange(version_, version) == version) return;
  std::vector<Owned*> left;
  for (std::optional<Owned>& owned : units_)
    if (owned) left.push_back(&*owned);
  while (!left.empty()) {
    Communicator& owners = *left.front()->owners;
    const auto others = std::stable_partition(left.begin(), left.end(),
                                              [&](const Owned* one) { return one->owners == &owners; });
    std::vector<Tensor> found;
    for (auto one = left.begin(); one != others; ++one) found.push_back((*one)->coded.maxima());
    Tensor amax_P = joined(found);
    share_maxima(owners, amax_P);
    if (tp_ != nullptr) share_maxima(*tp_, amax_P);
    int64_t first = 0;
    for (auto one = left.begin(); one != others; ++one) {
      CodedUnit& coded = (*one)->coded;
      coded.encode(amax_P.narrow(0, first, coded.num_matrices()));
      first += coded.num_matrices();
    }
    left.erase(left.begin(), others);
  }
}

}  // namespace tycho
