// Walks the slots in order and makes views of one arena.
#include "trainer/models/activations.h"

#include <utility>

#include "trainer/base/error.h"
#include "trainer/sharding/arena.h"

namespace tycho {

int64_t Activations::bytes(const ActivationSpecs& specs, const RecomputeConfig& recompute,
                           at::ScalarType dtype) {
  return activation_bytes(specs, recompute, static_cast<int64_t>(at::elementSize(dtype))).all();
}

Activations::Activations(const ActivationSpecs& specs, const RecomputeConfig& recompute, at::ScalarType dtype,
                         Tensor arena, const std::vector<Tensor>& lent)
    : arena_(std::move(arena)), of_library_(specs.saved.size()), attention_state_(specs.saved.size()) {
  const auto compute_bytes = static_cast<int64_t>(at::elementSize(dtype));
  const int64_t needed = bytes(specs, recompute, dtype);
  TYCHO_CHECK(needed <= arena_.numel(), "[model] expected {} bytes for activations, got {}", needed,
              arena_.numel());
  int64_t offset = 0;
  const LentSlots places = lent_slots(specs, recompute, compute_bytes);
  const auto view_of = [&](const Tensor& memory, int64_t begin, const SlotSpec& slot) {
    return arena_view(memory, begin, slot.shape, slot.type == SlotType::kFp32 ? at::kFloat : dtype);
  };
  const auto lay_out = [&](const SlotSpec& slot, int64_t lent_at, int64_t lender) {
    if (lent_at != LentSlots::kOwn) return view_of(lent[static_cast<size_t>(lender)], lent_at, slot);
    const int64_t begin = offset;
    offset += slot_bytes(slot, compute_bytes);
    return view_of(arena_, begin, slot);
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
      if (spec.of_library) of_library_[static_cast<size_t>(i)].push_back(slot);
      for (Views& set : saved_[static_cast<size_t>(i)])
        set.push_back(spec.of_library ? Tensor()
                      : again         ? view_of(arena_, shared, spec)
                                      : lay_out(spec, places.saved[static_cast<size_t>(i)][slot], i - 1));
    }
  }
  for (const SlotSpec& slot : specs.scratch) scratch_.push_back(lay_out(slot, LentSlots::kOwn, 0));
  for (size_t slot = 0; slot < specs.model.size(); ++slot)
    model_.push_back(lay_out(specs.model[slot], places.model[slot], std::ssize(specs.saved) - 1));
}

void Activations::give_back(int64_t i, int64_t set) {
  const auto block = static_cast<size_t>(i), at = static_cast<size_t>(set);
  attention_state_[block][at].clear();
  for (const size_t slot : of_library_[block]) saved_[block][at][slot] = Tensor();
}

}  // namespace tycho
