// Walks the slots in order and makes views of one arena.
#include "trainer/models/activations.h"

#include <utility>

#include "trainer/base/error.h"
#include "trainer/sharding/arena.h"

namespace tycho {
namespace {

int64_t total_bytes(const std::vector<SlotSpec>& slots, int64_t compute_bytes) {
  int64_t sum = 0;
  for (const SlotSpec& slot : slots) sum += slot_bytes(slot, compute_bytes);
  return sum;
}

}  // namespace

int64_t Activations::bytes(const ActivationSpecs& specs, const RecomputeConfig& recompute,
                           at::ScalarType dtype) {
  const auto compute_bytes = static_cast<int64_t>(at::elementSize(dtype));
  const SavedBytes saved = saved_bytes(specs, recompute, compute_bytes);
  return saved.kept + saved.shared + total_bytes(specs.scratch, compute_bytes) +
         total_bytes(specs.model, compute_bytes);
}

Activations::Activations(const ActivationSpecs& specs, const RecomputeConfig& recompute, at::ScalarType dtype,
                         Tensor arena)
    : arena_(std::move(arena)), attention_state_(specs.saved.size()) {
  const auto compute_bytes = static_cast<int64_t>(at::elementSize(dtype));
  const int64_t needed = bytes(specs, recompute, dtype);
  TYCHO_CHECK(needed <= arena_.numel(), "[model] expected {} bytes for activations, got {}", needed,
              arena_.numel());
  int64_t offset = 0;
  const auto view_at = [&](int64_t begin, const SlotSpec& slot) {
    return arena_view(arena_, begin, slot.shape, slot.type == SlotType::kFp32 ? at::kFloat : dtype);
  };
  const auto lay_out = [&](const SlotSpec& slot) {
    const int64_t begin = offset;
    offset += slot_bytes(slot, compute_bytes);
    return view_at(begin, slot);
  };
  saved_.resize(specs.saved.size());
  for (size_t i = 0; i < saved_.size(); ++i) {
    const auto sets = static_cast<size_t>(specs.sets_of(static_cast<int64_t>(i)));
    saved_[i].resize(sets), attention_state_[i].resize(sets);
  }
  for (size_t slot = 0; !specs.saved.empty() && slot < specs.saved[0].size(); ++slot) {
    const int64_t shared = offset;
    offset += shared_slot_bytes(specs, recompute, slot, compute_bytes);
    for (int64_t i = 0; i < std::ssize(specs.saved); ++i) {
      const SlotSpec& spec = specs.saved[static_cast<size_t>(i)][slot];
      const bool again = is_recomputed(spec, recompute.of(i));
      for (Views& set : saved_[static_cast<size_t>(i)])
        set.push_back(again ? view_at(shared, spec) : lay_out(spec));
    }
  }
  for (const SlotSpec& slot : specs.scratch) scratch_.push_back(lay_out(slot));
  for (const SlotSpec& slot : specs.model) model_.push_back(lay_out(slot));
}

}  // namespace tycho
