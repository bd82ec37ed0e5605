// Adds up the lists that the engine allocates by, for the stage of a pipeline that takes most.
#include "trainer/plan/rank_share.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/families/config.h"
#include "trainer/families/decoder_spec.h"
#include "trainer/layout/decoder_layout.h"
#include "trainer/layout/decoder_slots.h"
#include "trainer/layout/fp8_layers.h"
#include "trainer/layout/gpu_attention.h"
#include "trainer/layout/param_rules.h"
#include "trainer/layout/shard_rules.h"
#include "trainer/layout/stages.h"
#include "trainer/layout/tp_parts.h"
#include "trainer/plan/gpu_libraries.h"
#include "trainer/plan/planned_gpu.h"
#include "trainer/plan/region_traffic.h"
#include "trainer/plan/state_memory.h"

namespace tycho {
namespace {

constexpr int64_t kFloatBytes = 4;  // of fp32

int64_t compute_bytes_of(const TrainConfig& config) { return config.precision == Precision::kBf16 ? 2 : 4; }

const char* recompute_text(const RecomputeConfig& recompute) {
  switch (recompute.mode) {
    case Recompute::kAuto:
    case Recompute::kNone: return "";
    case Recompute::kNorms: return ", norms recomputed";
    case Recompute::kSelective: return ", norms and feed-forward inputs recomputed";
    case Recompute::kFull: return ", all but block inputs recomputed";
  }
  return "";
}

std::string blocks_text(const StagePart& part) {
  int64_t blocks = 0, sets = 0;
  for (const StagePart::Chunk& chunk : part.chunks)
    blocks += chunk.size(), sets = std::max(sets, chunk.num_sets);
  if (part.num_stages == 1) return fmt::format("{} blocks", blocks);
  return fmt::format("{} blocks of stage {}, {} micro-batches", blocks, part.stage, sets);
}

/// Returns the units of a rank, with those frozen that the recipe freezes.
std::vector<UnitSpec> units_of(const TrainConfig& config, const RankShare& share) {
  return with_frozen(share.layout.units,
                     param_rules(config.optimizer, config.param_groups, model_layout(config.model).units));
}

/// Returns the activations of a rank, and the gradients in which some of them wait.
ActivationSpecs activations_of(const TrainConfig& config, const RankShare& share, BatchShape shape,
                               const TpShape& tp) {
  const bool on_gpu = config.device == DeviceKind::kCuda;
  ActivationSpecs specs = stage_activations(
      activation_specs(config.model, shape, compute_bytes_of(config), on_gpu, tp, cp_shape(config.parallel),
                       loss_slots(config.loss, has_weights(config))),
      share.part);
  const std::vector<UnitSpec> units = units_of(config, share);
  for (size_t i = 0; !on_gpu && i < specs.saved.size(); ++i)
    specs.lent.push_back(lent_elements(units[i + 1], share.rules) * kFloatBytes);
  return specs;
}

void add_activations(const TrainConfig& config, const RankShare& share, BatchShape shape, const TpShape& tp,
                     const GpuShape& gpu, std::vector<ByteItem>& memory) {
  const StagePart& part = share.part;
  const int64_t compute_bytes = compute_bytes_of(config);
  const ActivationSpecs specs = activations_of(config, share, shape, tp);
  const ActivationBytes own = activation_bytes(specs, config.recompute, compute_bytes);
  const LentSlots lent = lent_slots(specs, config.recompute, compute_bytes);
  const DecoderSpec spec = tp_spec(decoder_spec(config.model, config.attention), tp);
  const bool lent_logits = lent.model[model_slot::kLogits] != LentSlots::kOwn;
  const int64_t logits = lent_logits ? 0 : specs.head_chunk * spec.vocab_size * compute_bytes;
  const std::string lent_text =
      lent.num_bytes == 0
          ? ""
          : fmt::format(", {} more in gradients", human_bytes(static_cast<double>(lent.num_bytes)));
  memory.push_back({"activations", own.kept,
                    fmt::format("{}{}{}", blocks_text(part), recompute_text(config.recompute), lent_text)});
  memory.push_back(
      {"shared activations", own.shared + own.other - logits, "residual stream, scratch of one block"});
  if (part.is_last())
    memory.push_back(
        {"logits chunk", logits,
         fmt::format("{} of {} tokens at once{}", specs.head_chunk, shape.tokens() / config.parallel.cp,
                     lent_logits ? ", in a gradient" : "")});
  const bool on_gpu = config.device == DeviceKind::kCuda;
  const BatchShape of_rank = {shape.batch, shape.seq / config.parallel.cp};
  if (spec.fp8.is_used())
    memory.push_back({"fp8", fp8_bytes(spec, of_rank, on_gpu), "operands of one layer, and its product"});
  if (!on_gpu) return;
  const bool bf16 = config.precision == Precision::kBf16;
  const GpuAttentionBytes attention =
      gpu_attention_bytes(spec, bf16, shape, cp_shape(config.parallel), gpu.num_sms);
  const char* obstacle = gpu_attention_obstacle(spec, bf16, shape.seq, config.parallel.cp);
  const char* no_flash_3 = spec.attention.flash_3
                               ? flash_3_attention_obstacle(spec, bf16, shape.seq, config.parallel.cp)
                               : nullptr;
  const auto lacking = [](const char* name, const char* why) {
    return why == nullptr ? "" : fmt::format(", without {}: {}", name, why);
  };
  memory.push_back(
      {"attention", own.of_library + attention.passing,
       fmt::format("{} of it while a block is computed{}{}{}",
                   human_bytes(static_cast<double>(attention.passing)),
                   attention.copies > 1 ? fmt::format(", {} copies of dq", attention.copies) : "",
                   lacking("flash attention", obstacle), lacking("FlashAttention-3", no_flash_3))});
}

/// Refuses models whose products in fp8, or whose attention, the GPU cannot compute.
void check_gpu(const TrainConfig& config, const GpuShape& gpu, const std::string& name) {
  constexpr int kOldestForFp8 = 89, kFlash3 = 9;
  const int capability = gpu.compute_capability;
  const std::string own_name = name.empty() ? "this GPU" : name;
  if (config.model.fp8.is_used() && capability > 0 && capability < kOldestForFp8)
    fail(ExitCode::kUsage,
         "[plan] fp8 needs compute capability 8.9 or newer (L40S, H100), and {} has {}.{}: remove fp8",
         own_name, capability / 10, capability % 10);
  const bool bf16 = config.precision == Precision::kBf16;
  const DecoderSpec spec = decoder_spec(config.model, config.attention);
  if (capability > 0 && capability / 10 != kFlash3 &&
      uses_flash_3(spec, bf16, config.seq_len, config.parallel.cp))
    fail(
        ExitCode::kUsage,
        "[plan] attention.flash = 3 needs compute capability 9.x (H100, H200), and {} has {}.{}: set it to 2",
        own_name, capability / 10, capability % 10);
  const std::string problem = flash_gradient_problem(spec, bf16, config.seq_len, config.parallel.cp, gpu);
  if (!problem.empty()) fail(ExitCode::kUsage, "[plan] {} on {}", problem, own_name);
}

/// Returns true when weights are copied for checkpoints: a GPU's to the host in any case, and bf16 ones as
/// fp32; a CPU's only for a save in the background.
bool copies_for_checkpoints(const TrainConfig& config) {
  return config.ckpt.async || config.device == DeviceKind::kCuda ||
         config.master_weights != MasterWeights::kFp32;
}

/// Returns the first rank along tp, which has the largest part.
TpShape tp_of(const TrainConfig& config) {
  return {config.parallel.tp, 0, config.parallel.sequence_parallel};
}

RankShare share_of_stage(const TrainConfig& config, ModelLayout layout, int64_t num_ranks, StagePart part) {
  layout.units =
      stage_units(tp_units(std::move(layout.units), tp_of(config), config.device == DeviceKind::kCuda), part,
                  layout.tied);
  const int64_t micro_batches = micro_batches_per_step(config, data_ranks(config.parallel, num_ranks));
  const ShardRules rules = shard_rules(config.parallel, layout, num_ranks, micro_batches);
  return {std::move(part), std::move(layout), rules};
}

std::vector<StagePart> parts_of(const TrainConfig& config, int64_t num_ranks) {
  return stage_parts(config, micro_batches_per_step(config, data_ranks(config.parallel, num_ranks)));
}

/// Returns the stages of which one may need most memory: those at both ends, and between them one for each
/// number of blocks and sets of activations.
std::vector<StagePart> heaviest(const std::vector<StagePart>& parts) {
  const auto weight_of = [](const StagePart& part) {
    std::pair<int64_t, int64_t> weight;  // blocks, and sets of their activations
    for (const StagePart::Chunk& chunk : part.chunks)
      weight.first += chunk.size(), weight.second += chunk.num_rows();
    return weight;
  };
  std::vector<StagePart> some;
  std::vector<std::pair<int64_t, int64_t>> between;
  for (const StagePart& part : parts) {
    const auto weight = weight_of(part);
    const auto is_as_heavy = [&](const auto& other) {
      return other.first >= weight.first && other.second >= weight.second;
    };
    const bool at_an_end = part.is_first() || part.is_last();
    if (!at_an_end && std::any_of(between.begin(), between.end(), is_as_heavy)) continue;
    if (!at_an_end) between.push_back(weight);
    some.push_back(part);
  }
  return some;
}

BatchShape micro_batch_of(const TrainConfig& config, int64_t num_ranks) {
  return {micro_batch_sequences(config, data_ranks(config.parallel, num_ranks)), config.seq_len};
}

/// Returns the bytes for reading the base of adapters, which is read unit by unit as fp32 even when the run
/// has it as bf16.
int64_t reading_bytes(const TrainConfig& config, const RankShare& share) {
  if (config.precision != Precision::kBf16) return 0;
  int64_t most = 0;
  for (const UnitSpec& unit : share.layout.units)
    if (unit.base)
      most = std::max(most, share.rules.num_ranks == 1 ? unit.numel()
                                                       : shard_elements(unit.numel(), share.rules.num_ranks));
  return most * kFloatBytes;
}

/// Adds the activations that each chunk receives from the previous stage, the gradients from the next one,
/// and the sum of a tied embedding's gradient.
void add_pp_traffic(const TrainConfig& config, const RankShare& share, Plan& plan) {
  const StagePart& part = share.part;
  if (part.num_stages == 1) return;
  int64_t messages = 0;
  for (size_t c = 0; c < part.chunks.size(); ++c)
    messages += (part.has_embedding(c) ? 0 : 1) + (part.has_head(c) ? 0 : 1);
  const int64_t tokens =
      tp_of(config).own_tokens(micro_batch_of(config, plan.num_ranks).tokens() / config.parallel.cp);
  plan.traffic.push_back(
      {"pp", messages * plan.micro_batches_per_step * tokens * share.layout.width * compute_bytes_of(config),
       "activations, and gradients of them"});
  const UnitSpec embedding = units_of(config, share).front();
  if (!share.layout.tied || embedding.frozen()) return;
  const int64_t own = share.rules.num_ranks == 1 ? embedding.numel()
                                                 : shard_elements(embedding.numel(), share.rules.num_ranks);
  plan.traffic.push_back({"pp", own * kFloatBytes, "gradients of the tied embedding, summed"});
}

}  // namespace

void add_memory(const TrainConfig& config, const ModelLayout& whole, const PlanDevices& devices, Plan& plan) {
  const int64_t num_ranks = devices.num_ranks;
  const GpuShape gpu = planned_gpu(config, devices);
  if (config.device == DeviceKind::kCuda) check_gpu(config, gpu, planned_gpu_name(config, devices));
  RankShare most;
  for (const StagePart& part : heaviest(parts_of(config, num_ranks))) {
    const RankShare share = share_of_stage(config, whole, num_ranks, part);
    std::vector<ByteItem> memory = state_memory(config, share.layout, share.rules);
    add_activations(config, share, micro_batch_of(config, num_ranks), tp_of(config), gpu, memory);
    int64_t num_bytes = 0;
    for (const ByteItem& item : memory) num_bytes += item.num_bytes;
    if (num_bytes <= plan.training_bytes) continue;
    plan.memory = std::move(memory), plan.training_bytes = num_bytes, most = share;
  }
  plan.stage = most.part.stage;
  const bool on_host = config.device == DeviceKind::kCuda;
  const bool copies = copies_for_checkpoints(config);
  const int64_t copy = copies ? state_copy_bytes(config, most.layout, most.rules) : 0;
  // Before the first save, so only what it takes beyond the copy counts.
  if (const int64_t reading = reading_bytes(config, most); !on_host && reading > copy) {
    plan.memory.push_back({"reading the base", reading - copy, "a unit of it in fp32, at the start"});
    plan.training_bytes += reading - copy;
  }
  if (on_host) {
    for (ByteItem& item :
         gpu_library_memory(mesh_shape(config.parallel, num_ranks), cp_shape(config.parallel).ring)) {
      plan.estimated_bytes += item.num_bytes;
      plan.memory.push_back(std::move(item));
    }
    plan.training_bytes += plan.estimated_bytes;
  }
  plan.memory_bytes = plan.training_bytes;
  if (!copies) return;
  plan.memory.push_back(
      {"checkpoint copy", copy, on_host ? "on the host, not in the total" : "after the first save"});
  (on_host ? plan.host_bytes : plan.memory_bytes) += copy;
}

void add_traffic(const TrainConfig& config, const ModelLayout& whole, int64_t num_ranks, Plan& plan) {
  if (num_ranks == 1) return;
  const MeshShape mesh = mesh_shape(config.parallel, num_ranks);
  plan.mesh = describe(mesh);
  const RankShare share =
      share_of_stage(config, whole, num_ranks, parts_of(config, num_ranks)[static_cast<size_t>(plan.stage)]);
  plan.traffic = step_traffic(config, share.layout, share.rules, mesh.size(Axis::kDpReplicate),
                              plan.micro_batches_per_step);
  add_pp_traffic(config, share, plan);
  for (ByteItem& item : region_traffic(config, whole, share, tp_of(config), micro_batch_of(config, num_ranks),
                                       plan.micro_batches_per_step))
    plan.traffic.push_back(std::move(item));
}

}  // namespace tycho
