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

Activations::Activations(const ActivationSpecs& specs, int64_t num_blocks, at::ScalarType dtype,
                         const at::Device& device)
    : attention_state_(static_cast<size_t>(num_blocks)) {
  const auto compute_bytes = static_cast<int64_t>(at::elementSize(dtype));
  arena_ = make_arena(num_blocks * total_bytes(specs.saved, compute_bytes) +
                          total_bytes(specs.scratch, compute_bytes) + total_bytes(specs.model, compute_bytes),
                      device);
  int64_t offset = 0;
  const auto lay_out = [&](const std::vector<SlotSpec>& slots) {
    Views views;
    for (const SlotSpec& slot : slots) {
      views.push_back(
          arena_view(arena_, offset, slot.shape, slot.type == SlotType::kFp32 ? at::kFloat : dtype));
      offset += slot_bytes(slot, compute_bytes);
    }
    return views;
  };
  for (int64_t i = 0; i < num_blocks; ++i) saved_.push_back(lay_out(specs.saved));
  scratch_ = lay_out(specs.scratch);
  model_ = lay_out(specs.model);
}

}  // namespace tycho
