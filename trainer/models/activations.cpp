// The activations of one micro-batch, laid out once in one arena.
#include "trainer/models/activations.h"

#include "trainer/units/arena.h"

namespace tycho {
namespace {

int64_t total_bytes(const std::vector<SlotSpec>& slots, int64_t compute_bytes) {
  int64_t sum = 0;
  for (const SlotSpec& slot : slots) sum += slot_bytes(slot, compute_bytes);
  return sum;
}

}  // namespace

Activations::Activations(const ActivationSpecs& specs, int64_t num_blocks, const RecomputeConfig& recompute,
                         at::ScalarType dtype, const at::Device& device)
    : attention_state_(static_cast<size_t>(num_blocks)) {
  const auto compute_bytes = static_cast<int64_t>(at::elementSize(dtype));
  const SavedBytes saved = saved_bytes(specs, recompute, num_blocks, compute_bytes);
  arena_ = make_arena(saved.kept + saved.shared + total_bytes(specs.scratch, compute_bytes) +
                          total_bytes(specs.model, compute_bytes),
                      device);
  int64_t offset = 0;
  const auto lay_out = [&](const SlotSpec& slot) {
    const Tensor slot_view =
        arena_view(arena_, offset, slot.shape, slot.type == SlotType::kFp32 ? at::kFloat : dtype);
    offset += slot_bytes(slot, compute_bytes);
    return slot_view;
  };
  saved_.resize(static_cast<size_t>(num_blocks));
  for (const SlotSpec& slot : specs.saved) {
    Tensor shared;
    for (int64_t i = 0; i < num_blocks; ++i) {
      const bool again = is_recomputed(slot, recompute.of(i));
      if (again && !shared.defined()) shared = lay_out(slot);
      saved_[static_cast<size_t>(i)].push_back(again ? shared : lay_out(slot));
    }
  }
  for (const SlotSpec& slot : specs.scratch) scratch_.push_back(lay_out(slot));
  for (const SlotSpec& slot : specs.model) model_.push_back(lay_out(slot));
}

}  // namespace tycho
