// Lays out the activation slots that a decoder's code uses.
#include "trainer/layout/decoder_slots.h"

#include <algorithm>

#include "trainer/layout/cp_slots.h"
#include "trainer/layout/decoder_layout.h"
#include "trainer/layout/gpu_attention.h"

namespace tycho {
namespace {

/// Returns slots that are large enough for the adapters of any block, in the order of block_scratch.
std::vector<SlotSpec> adapter_slots(const DecoderSpec& s, int64_t tokens) {
  int64_t columns = 0, rows = 0, rank = 0;
  const ModelLayout layout = s.lora.is_used() ? decoder_layout(s) : ModelLayout();
  for (int64_t i = 0; s.lora.is_used() && i < s.layers; ++i) {
    const size_t num_params = layout.units[static_cast<size_t>(i) + 1].params.size();
    for (const AdapterViews& place : block_params(s, i).adapters) {
      rank = s.lora.rank;
      if (s.lora.dropout > 0) columns = std::max(columns, place.columns);
      if (static_cast<size_t>(place.weight) >= num_params) rows = std::max(rows, place.rows);
    }
  }
  return {{"adapter_input", {tokens, columns}},
          {"low", {tokens, rank}},
          {"d_low", {tokens, rank}},
          {"adapter_output", {tokens, rows}}};
}

SlotSpec fp32(const char* name, int64_t n) { return {name, {n}, SlotType::kFp32}; }

SlotSpec of_head(SlotSpec slot) {
  slot.of_head = true;
  return slot;
}

/// Marks what attention on a GPU leaves in LibTorch's memory: its log-sum-exp, unless a ring adds to that,
/// and its output, unless calls for two spans of a sequence write parts of it.
void mark_of_library(const DecoderSpec& s, const BlockSpec& block, BatchShape whole, int64_t compute_bytes,
                     const CpShape& cp, std::vector<SlotSpec>& saved) {
  if (!has_fused_attention(s, block, /*bf16=*/compute_bytes == 2, whole.seq, cp.size)) return;
  saved[block_saved::kLogSumExp].of_library = !cp.ring;
  saved[block_saved::kAttention].of_library = cp.size == 1;
}

/// Returns the saved slots in the order of block_saved.
std::vector<SlotSpec> saved_slots(const DecoderSpec& s, BatchShape shape, int64_t block, const TpShape& tp) {
  const int64_t N = shape.tokens(), D = s.width, F = s.ffn.width, S = tp.own_tokens(N);
  const int64_t E = s.attention.width(), KV = 2 * s.attention.kv_heads * s.attention.head_dim;
  const bool reuses = s.reuses_kv(block), reused = !reuses && s.last_user_of_kv(block) != block;
  const bool reuses_x = s.reuses_x(block), x_reused = !reuses_x && s.last_user_of_x(block) != block;
  const bool has_means = s.norm.kind == NormKind::kLayer;
  const int64_t C = reuses ? E : E + KV;
  const int64_t before = s.norms_before() ? S : 0, after = s.norms_after() ? S : 0;
  const int64_t means = has_means ? before : 0, means_after = has_means ? after : 0;
  const int64_t groups_q = s.attention.qk_norm == QkNorm::kPerHead    ? s.attention.heads
                           : s.attention.qk_norm == QkNorm::kTogether ? 1
                                                                      : 0,
                groups_k = reuses                                    ? 0
                           : s.attention.qk_norm == QkNorm::kPerHead ? s.attention.kv_heads
                                                                     : groups_q;
  const int64_t qk_means = s.attention.qk.kind == NormKind::kLayer ? N : 0;
  return {{"normed1", {before, D}, SlotType::kCompute, Recompute::kNorms},
          fp32("mean1", means),
          fp32("inv1", before),
          {"qkv_raw", {s.attention.changes_qkv() ? N : 0, C}},
          fp32("q_mean", qk_means * groups_q),
          fp32("q_inv", N * groups_q),
          fp32("k_mean", qk_means * groups_k),
          fp32("k_inv", N * groups_k),
          {"qkv", {N, C}, SlotType::kCompute, Recompute::kFull, /*kept=*/reused},
          {"attention", {N, E}},
          {"log_sum_exp", {shape.batch, s.attention.heads, shape.seq}, SlotType::kFp32},
          {"middle", {S, D}},
          {"normed2", {before, D}, SlotType::kCompute, Recompute::kNorms},
          fp32("mean2", means),
          fp32("inv2", before),
          {"up", {N, s.ffn.gated ? 2 * F : F}, SlotType::kCompute, Recompute::kSelective},
          {"d_kv", {reused ? N : 0, KV}, SlotType::kCompute, Recompute::kFull, /*kept=*/true},
          {"normed_kv", {reuses_x ? S : 0, D}, SlotType::kCompute, Recompute::kNorms},
          fp32("mean_kv", reuses_x ? means : 0),
          fp32("inv_kv", reuses_x ? S : 0),
          {"d_x", {x_reused ? S : 0, D}, SlotType::kCompute, Recompute::kFull, /*kept=*/true},
          {"branch1", {after, D}},
          fp32("mean_after1", means_after),
          fp32("inv_after1", after),
          {"branch2", {after, D}},
          fp32("mean_after2", means_after),
          fp32("inv_after2", after)};
}

}  // namespace

ActivationSpecs decoder_activations(const DecoderSpec& spec, BatchShape whole, int64_t compute_bytes,
                                    bool on_gpu, const TpShape& tp, const CpShape& cp,
                                    const LossSlots& loss) {
  const DecoderSpec s = tp_spec(spec, tp);
  const BatchShape shape = {whole.batch, whole.seq / cp.size};
  const int64_t N = shape.tokens(), D = s.width, F = s.ffn.width, S = tp.own_tokens(N);
  const bool shared = tp.size > 1, cut = tp.cuts_tokens();
  const bool adds_apart = shared || s.residual.dropout > 0 || s.residual.scale != 1 || s.norms_after();
  const int64_t E = s.attention.width(), C = s.attention.qkv_width();
  ActivationSpecs specs;
  for (int64_t i = 0; i < s.layers; ++i) {
    specs.saved.push_back(saved_slots(s, shape, i, tp));
    if (on_gpu) mark_of_library(s, s.block(i), whole, compute_bytes, cp, specs.saved.back());
  }
  specs.scratch = {{"hidden", {N, F}},
                   {"d_hidden", {N, F}},
                   {"d_qkv", {N, C}},
                   {"d_attention", {N, E}},
                   {"d_normed", {S, D}},
                   {"added", {adds_apart ? S : 0, D}},
                   {"packed_qkv", {s.shares_kv() || s.shares_x() ? N : 0, C}},
                   {"d_normed_kv", {s.shares_x() ? S : 0, D}},
                   {"all_tokens", {cut ? N : 0, D}},
                   {"partial", {cut ? N : 0, D}}};
  for (SlotSpec& slot : cp_slots(s, whole, compute_bytes, cp)) specs.scratch.push_back(std::move(slot));
  for (SlotSpec& slot : adapter_slots(s, N)) specs.scratch.push_back(std::move(slot));
  // Large chunks read the head's weights, and add to their gradient, less often; above 64 MiB of logits this
  // gains nothing more on a CPU. A GPU needs products of some thousand rows, whatever the vocabulary, and
  // gains up to 16,384: a sixteenth of the tokens, so that logits stay small beside the activations.
  constexpr int64_t kChunkBytes = int64_t{64} << 20;
  const int64_t fewest = on_gpu ? std::clamp<int64_t>(N / 16 / 64 * 64, 4096, 16384) : 64;
  const int64_t most = tp_items(spec.vocab_size, {tp.size, 0}).size();  // the first rank has the most items
  specs.head_chunk =
      std::clamp<int64_t>(kChunkBytes / (most * compute_bytes) / 64 * 64, std::min<int64_t>(N, fewest), N);
  const int64_t means = s.norm.kind == NormKind::kLayer ? S : 0;
  specs.model = {{"stream", {s.layers + 1, S, D}},
                 of_head({"normed_final", {S, D}}),
                 of_head(fp32("mean_final", means)),
                 of_head(fp32("inv_final", S)),
                 of_head({"logits", {specs.head_chunk, padded_rows(s.vocab_size, on_gpu)}}),
                 of_head({"statistics", {loss.statistics, specs.head_chunk}, SlotType::kFp32}),
                 {"losses", {loss.losses, N}, SlotType::kFp32},
                 {"d_stream", {1, S, D}},  // one for each micro-batch in its backward pass
                 of_head({"d_normed", {S, D}})};
  return specs;
}

}  // namespace tycho
