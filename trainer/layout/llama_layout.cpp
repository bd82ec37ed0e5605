// Llama's units and activation slots. Names and shapes are Hugging Face's (LlamaForCausalLM).
#include "trainer/layout/llama_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tycho {
namespace {

UnitSpec block_unit(const LlamaConfig& c, int64_t layer) {
  const std::string prefix = fmt::format("model.layers.{}.", layer);
  const Init normal = {Init::Kind::kNormal, c.init_std};
  const Init residual = {Init::Kind::kNormal, c.init_std / std::sqrt(2.0 * static_cast<double>(c.layers))};
  const Init ones = {Init::Kind::kOnes, 0};
  const int64_t q = c.heads * c.head_dim(), kv = c.num_kv_heads() * c.head_dim();
  UnitSpec unit;
  unit.name = fmt::format("model.layers.{}", layer);
  const auto add = [&](const char* name, Shape shape, Init init, bool decay, TpSplit split) {
    unit.params.push_back({prefix + name, std::move(shape), init, decay, split});
  };
  add("input_layernorm.weight", {c.width}, ones, false, TpSplit::kNone);
  add("self_attn.q_proj.weight", {q, c.width}, normal, true, TpSplit::kRows);
  add("self_attn.k_proj.weight", {kv, c.width}, normal, true, TpSplit::kRows);
  add("self_attn.v_proj.weight", {kv, c.width}, normal, true, TpSplit::kRows);
  add("self_attn.o_proj.weight", {c.width, q}, residual, true, TpSplit::kColumns);
  add("post_attention_layernorm.weight", {c.width}, ones, false, TpSplit::kNone);
  add("mlp.gate_proj.weight", {c.ffn_width, c.width}, normal, true, TpSplit::kRows);
  add("mlp.up_proj.weight", {c.ffn_width, c.width}, normal, true, TpSplit::kRows);
  add("mlp.down_proj.weight", {c.width, c.ffn_width}, residual, true, TpSplit::kColumns);
  unit.stacks = {{llama_param::kQ, 3}, {llama_param::kGate, 2}};
  return unit;
}

}  // namespace

ModelLayout llama_layout(const LlamaConfig& c) {
  const Init normal = {Init::Kind::kNormal, c.init_std};
  ModelLayout layout;
  layout.num_blocks = c.layers;
  layout.attention_width = c.heads * c.head_dim();
  layout.width = c.width;
  layout.vocab_size = c.vocab_size;
  layout.tied = c.tied;

  UnitSpec embedding{.name = "model.embed_tokens"};
  embedding.params.push_back(
      {"model.embed_tokens.weight", {c.vocab_size, c.width}, normal, true, TpSplit::kVocab});
  layout.units.push_back(std::move(embedding));
  for (int64_t i = 0; i < c.layers; ++i) layout.units.push_back(block_unit(c, i));
  UnitSpec head{.name = "lm_head"};
  head.params.push_back({"model.norm.weight", {c.width}, {Init::Kind::kOnes, 0}, false, TpSplit::kNone});
  if (!c.tied)
    head.params.push_back({"lm_head.weight", {c.vocab_size, c.width}, normal, true, TpSplit::kVocab});
  layout.units.push_back(std::move(head));

  // The look-up is not a product; a tied table takes part in one as the head.
  layout.num_matmul_params = layout.num_params() - (c.tied ? 0 : c.vocab_size * c.width);
  return layout;
}

ActivationSpecs llama_activations(const LlamaConfig& c, BatchShape shape, int64_t compute_bytes) {
  const int64_t N = shape.tokens(), D = c.width, F = c.ffn_width, V = c.vocab_size;
  const int64_t E = c.heads * c.head_dim(), C = E + 2 * c.num_kv_heads() * c.head_dim();
  ActivationSpecs specs;
  specs.saved = {{"normed_attention", {N, D}},
                 {"inv_rms_attention", {N}, SlotType::kFp32},
                 {"qkv", {N, C}},
                 {"attention", {N, E}},
                 {"log_sum_exp", {shape.batch, c.heads, shape.seq}, SlotType::kFp32},
                 {"middle", {N, D}},
                 {"normed_mlp", {N, D}},
                 {"inv_rms_mlp", {N}, SlotType::kFp32},
                 {"gate_up", {N, 2 * F}}};
  specs.scratch = {{"hidden", {N, F}},
                   {"d_hidden", {N, F}},
                   {"d_qkv", {N, C}},
                   {"d_attention", {N, E}},
                   {"d_normed", {N, D}}};
  // Big chunks read the head's weights seldom; 64 MiB of logits is where more stops to pay.
  constexpr int64_t kChunkBytes = int64_t{64} << 20;
  specs.head_chunk =
      std::clamp<int64_t>(kChunkBytes / (V * compute_bytes) / 64 * 64, std::min<int64_t>(N, 64), N);
  const int64_t chunk = specs.head_chunk;
  specs.model = {{"stream", {c.layers + 1, N, D}},
                 {"normed_final", {N, D}},
                 {"inv_rms_final", {N}, SlotType::kFp32},
                 {"logits", {chunk, V}},
                 {"losses", {N}, SlotType::kFp32},
                 {"d_stream", {N, D}},
                 {"d_normed", {N, D}}};
  return specs;
}

}  // namespace tycho
