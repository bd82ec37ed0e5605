// Sums over a model's layout.
#include "trainer/layout/model_layout.h"

#include <algorithm>

#include "trainer/layout/decoder_layout.h"
#include "trainer/layout/decoder_slots.h"
#include "trainer/recipe/loss.h"

namespace tycho {
namespace {

int64_t padded_bytes(const SlotSpec& slot, int64_t compute_bytes) {
  constexpr int64_t kAlignment = 64;  // a cache line, and the widest vector
  const int64_t num_bytes = numel(slot.shape) * (slot.type == SlotType::kFp32 ? 4 : compute_bytes);
  return (num_bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Returns the largest number of bytes that a block which recomputes the slot takes for it, in an arena or
/// in LibTorch's memory.
int64_t largest_recomputed(const ActivationSpecs& specs, const RecomputeConfig& recompute, size_t slot,
                           int64_t compute_bytes, bool of_library) {
  int64_t largest = 0;
  for (int64_t i = 0; i < std::ssize(specs.saved); ++i) {
    const SlotSpec& spec = specs.saved[static_cast<size_t>(i)][slot];
    if (spec.of_library == of_library && is_recomputed(spec, recompute.of(i)))
      largest = std::max(largest, padded_bytes(spec, compute_bytes));
  }
  return largest;
}

}  // namespace

int64_t numel(const Shape& shape) {
  int64_t n = 1;
  for (const int64_t dim : shape) n *= dim;
  return n;
}

int64_t ParamSpec::room() const {
  const int64_t own = numel(shape);
  return zero_rows == 0 ? own : own + own / shape.front() * zero_rows;
}

int64_t UnitSpec::numel() const {
  int64_t n = 0;
  for (const ParamSpec& param : params) n += param.room();
  return n;
}

size_t UnitSpec::padded_view(size_t i) const {
  for (size_t k = 0; params[i].zero_rows > 0 && k < stacks.size(); ++k)
    if (stacks[k].count == 1 && stacks[k].first == static_cast<int>(i)) return params.size() + k;
  return i;
}

bool UnitSpec::frozen() const {
  return std::all_of(params.begin(), params.end(), [](const ParamSpec& param) { return param.frozen; });
}

int64_t ModelLayout::num_params() const {
  int64_t n = 0;
  for (const UnitSpec& unit : units) n += unit.numel();
  return n;
}

int64_t ModelLayout::num_adapter_params() const {
  int64_t n = 0;
  for (const UnitSpec& unit : units) n += unit.adapts < 0 ? 0 : unit.numel();
  return n;
}

double ModelLayout::product_flops() const {
  const int64_t adapters = num_adapter_params();
  return (adapters > 0 ? 4.0 : 6.0) * static_cast<double>(num_matmul_params) +
         6.0 * static_cast<double>(adapters);
}

double ModelLayout::flops_per_token_full(int64_t seq) const {
  return product_flops() + 12.0 * static_cast<double>(num_blocks) * static_cast<double>(attention_width) *
                               static_cast<double>(seq);
}

double ModelLayout::flops_per_token_causal(int64_t seq) const {
  return product_flops() + 6.0 * static_cast<double>(num_blocks) * static_cast<double>(attention_width) *
                               static_cast<double>(seq);
}

int64_t slot_bytes(const SlotSpec& slot, int64_t compute_bytes) {
  return slot.of_library ? 0 : padded_bytes(slot, compute_bytes);
}

bool is_recomputed(const SlotSpec& slot, Recompute mode) {
  return !slot.kept && mode != Recompute::kNone && slot.again <= mode;
}

int64_t shared_slot_bytes(const ActivationSpecs& specs, const RecomputeConfig& recompute, size_t slot,
                          int64_t compute_bytes) {
  return largest_recomputed(specs, recompute, slot, compute_bytes, /*of_library=*/false);
}

LentSlots lent_slots(const ActivationSpecs& specs, const RecomputeConfig& recompute, int64_t compute_bytes) {
  LentSlots places;
  const auto lay_out = [&](const std::vector<SlotSpec>& slots, int64_t lender, const auto& may_be_there) {
    std::vector<int64_t> offsets(slots.size(), LentSlots::kOwn);
    const int64_t room = lender < 0 || specs.lent.empty() ? 0 : specs.lent[static_cast<size_t>(lender)];
    int64_t end = 0;
    for (size_t i = 0; i < slots.size(); ++i) {
      const int64_t num_bytes = slot_bytes(slots[i], compute_bytes);
      if (num_bytes == 0 || !may_be_there(slots[i])) continue;
      if (end + num_bytes > room) break;
      offsets[i] = end, end += num_bytes;
    }
    places.num_bytes += end;
    return offsets;
  };
  for (int64_t i = 0; i < std::ssize(specs.saved); ++i)
    places.saved.push_back(lay_out(specs.saved[static_cast<size_t>(i)], i - 1, [&](const SlotSpec& slot) {
      return !is_recomputed(slot, recompute.of(i));
    }));
  places.model =
      lay_out(specs.model, std::ssize(specs.saved) - 1, [](const SlotSpec& slot) { return slot.of_head; });
  return places;
}

ActivationBytes activation_bytes(const ActivationSpecs& specs, const RecomputeConfig& recompute,
                                 int64_t compute_bytes) {
  ActivationBytes bytes;
  const LentSlots lent = lent_slots(specs, recompute, compute_bytes);
  const auto own_bytes = [&](const SlotSpec& slot, int64_t lent_at) {
    return lent_at == LentSlots::kOwn ? slot_bytes(slot, compute_bytes) : 0;
  };
  for (size_t i = 0; i < specs.saved.size(); ++i)
    for (size_t slot = 0; slot < specs.saved[i].size(); ++slot) {
      const auto block = static_cast<int64_t>(i);
      const SlotSpec& spec = specs.saved[i][slot];
      if (is_recomputed(spec, recompute.of(block))) continue;
      bytes.kept += specs.sets_of(block) * own_bytes(spec, lent.saved[i][slot]);
      if (spec.of_library) bytes.of_library += specs.sets_of(block) * padded_bytes(spec, compute_bytes);
    }
  for (size_t slot = 0; !specs.saved.empty() && slot < specs.saved[0].size(); ++slot) {
    bytes.shared += shared_slot_bytes(specs, recompute, slot, compute_bytes);
    bytes.of_library += largest_recomputed(specs, recompute, slot, compute_bytes, /*of_library=*/true);
  }
  for (const SlotSpec& slot : specs.scratch) bytes.other += slot_bytes(slot, compute_bytes);
  for (size_t slot = 0; slot < specs.model.size(); ++slot)
    bytes.other += own_bytes(specs.model[slot], lent.model[slot]);
  return bytes;
}

LossSlots loss_slots(const LossConfig& loss, bool has_weights) {
  const auto terms = static_cast<int64_t>(loss.terms().size());
  return {.losses = 1 + terms, .statistics = terms > 0 || has_weights ? kStatisticsOfToken : 0};
}

ModelLayout model_layout(const ModelConfig& config) { return decoder_layout(decoder_spec(config)); }

ActivationSpecs activation_specs(const ModelConfig& config, BatchShape shape, int64_t compute_bytes,
                                 bool on_gpu, const TpShape& tp, const CpShape& cp, const LossSlots& loss) {
  return decoder_activations(decoder_spec(config), shape, compute_bytes, on_gpu, tp, cp, loss);
}

}  // namespace tycho
