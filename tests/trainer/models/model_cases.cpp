// The models that the tests of all models run.
#include "tests/trainer/models/model_cases.h"

#include "tests/trainer/expression/activation_functions.h"

namespace tycho {
namespace {

LlamaConfig llama(int64_t width, int64_t layers, int64_t heads, int64_t kv_heads, int64_t ffn, int64_t vocab,
                  bool tied) {
  LlamaConfig c;
  c.width = width, c.layers = layers, c.heads = heads, c.kv_heads = kv_heads;
  c.ffn_width = ffn, c.vocab_size = vocab, c.tied = tied;
  c.init_std = 0.2;  // far from linear: small weights would hide wrong terms
  c.rope_theta = 10000;
  return c;
}

MptConfig mpt(PositionKind positions) {
  MptConfig c;
  c.width = 48, c.layers = 2, c.heads = 6, c.vocab_size = 90, c.max_seq_len = 70;
  c.expansion_ratio = 2;
  c.positions = positions;
  return c;
}

ModelCase adapted(const char* name, ModelConfig config, BatchShape shape, LoraConfig lora) {
  config.lora = std::move(lora);
  return {name, std::move(config), shape};
}

std::vector<ModelCase> adapter_cases(const Gpt2Config& gpt2, MptConfig reused_inputs) {
  reused_inputs.clip_qkv.reset();  // larger queries would be clipped more often, and a clip's gradient jumps
  return {
      adapted("adapters_llama", {llama(32, 2, 4, 2, 64, 97, true)}, {2, 16}, {.rank = 3, .alpha = 2}),
      // The middle one of three blocks; some layers of a stack.
      adapted("adapters_of_one_block", {llama(48, 3, 6, 1, 40, 130, false)}, {1, 33},
              {.rank = 4, .alpha = 3, .rslora = true, .targets = {"1.self_attn.v_proj", "1.mlp.up_proj"}}),
      adapted("adapters_gpt2", {gpt2}, {1, 40}, {.rank = 2}),
      adapted("adapters_mpt_fused", {mpt(PositionKind::kAlibi)}, {1, 50},
              {.rank = 5, .targets = {"Wqkv", "ffn..*"}}),
      adapted("adapters_mpt_reused_inputs", {reused_inputs}, {2, 16}, {.rank = 3})};
}

/// A small model of a family, of Llama's kind.
template <class Family>
Family dense(int64_t width, int64_t layers, int64_t heads, int64_t kv_heads, int64_t head_width) {
  Family c;
  c.width = width, c.layers = layers, c.heads = heads, c.kv_heads = kv_heads, c.head_width = head_width;
  c.ffn_width = 40, c.vocab_size = 83, c.init_std = 0.2, c.rope_theta = 10000, c.rope_scaling = {};
  return c;
}

RopeScalingConfig yarn(int64_t original) {
  RopeScalingConfig rope;
  rope.type = RopeScaling::kYarn, rope.factor = 4, rope.original_max_seq_len = original;
  rope.beta_fast = 3, rope.beta_slow = 0.4;
  return rope;
}

/// Cases of the families after Llama: together they have every mechanism that a Llama lacks.
std::vector<ModelCase> family_cases() {
  auto gemma2 = dense<Gemma2Config>(32, 2, 6, 3, 10);
  gemma2.sliding_window = 6, gemma2.query_pre_attn_scalar = 14;
  gemma2.attn_softcap = 2, gemma2.final_softcap = 4;
  auto gemma3 = dense<Gemma3Config>(24, 3, 4, 2, 8);
  gemma3.sliding_window = 5, gemma3.layer_types = {LayerType::kSliding, LayerType::kFull};
  gemma3.query_pre_attn_scalar = 10, gemma3.rope_theta = 50000, gemma3.rope_local_theta = 300;
  gemma3.rope_scaling = {.type = RopeScaling::kLinear, .factor = 2};
  auto olmo3 = dense<Olmo3Config>(24, 2, 6, 2, 8);
  olmo3.sliding_window = 7, olmo3.layer_types = {LayerType::kSliding, LayerType::kFull};
  olmo3.rope_scaling = yarn(8), olmo3.attention_bias = true;
  auto phi3 = dense<Phi3Config>(32, 2, 6, 3, 12);
  phi3.partial_rotary_factor = 0.5, phi3.sliding_window = 9;
  auto granite = dense<GraniteConfig>(24, 2, 4, 4, 8);
  granite.embedding_multiplier = 3, granite.residual_multiplier = 0.6, granite.logits_scaling = 2;
  granite.attention_multiplier = 0.2;
  auto ministral3 = dense<Ministral3Config>(24, 2, 4, 2, 10);
  ministral3.rope_scaling = yarn(5), ministral3.attn_scale = 0.4;
  auto smollm3 = dense<Smollm3Config>(24, 3, 6, 2, 6);
  smollm3.rope_layers = {1, 0}, smollm3.sliding_window = 8, smollm3.ffn_bias = true;
  smollm3.layer_types = {LayerType::kFull, LayerType::kSliding};
  Gemma2Config own = gemma2;
  own.activation = Activation::kSilu, own.activation.expression = silu_function();
  auto qwen2 = dense<Qwen2Config>(24, 1, 4, 2, 8);
  qwen2.activation = Activation::kGelu;
  return {{"gemma2", {gemma2}, {2, 18}},
          {"gemma3", {gemma3}, {2, 16}},
          {"olmo3", {olmo3}, {2, 20}},
          {"phi3", {phi3}, {1, 30}},
          {"granite", {granite}, {2, 12}},
          {"ministral3", {ministral3}, {2, 17}},
          {"smollm3", {smollm3}, {1, 26}},
          {"qwen2", {qwen2}, {2, 9}},
          adapted("adapters_phi3_fused", {phi3}, {2, 12}, {.rank = 3}),
          adapted("adapters_gemma2_own_activation", {own}, {1, 20}, {.rank = 2, .alpha = 3})};
}

}  // namespace

std::vector<ModelCase> model_cases() {
  std::vector<ModelCase> all = {{"tied_gqa", {llama(32, 2, 4, 2, 64, 97, true)}, {2, 16}},
                                {"untied_mqa", {llama(48, 3, 6, 1, 40, 130, false)}, {1, 33}},
                                {"plain_heads", {llama(64, 2, 4, 4, 96, 256, false)}, {3, 8}}};
  LlamaConfig wide = llama(40, 1, 3, 1, 24, 67, false), biased = llama(32, 2, 4, 2, 48, 60, false);
  wide.head_width = 14;
  biased.attention_bias = biased.ffn_bias = true;
  biased.activation = Activation::kQuickGelu;  // the oracle uses the name
  biased.activation.expression = quick_gelu_function();
  all.push_back({"wide_heads", {wide}, {1, 1}});
  all.push_back({"llama_biases_own_activation", {biased}, {2, 12}});

  all.push_back({"mpt_learned", {mpt(PositionKind::kLearned)}, {2, 33}});
  all.push_back({"mpt_alibi", {mpt(PositionKind::kAlibi)}, {1, 70}});
  MptConfig rope = mpt(PositionKind::kRope), normed = mpt(PositionKind::kAlibi),
            capped = mpt(PositionKind::kNone);
  rope.no_bias = true, rope.kv_heads = 2, rope.norm = MptNorm::kRmsNorm, rope.ffn = MptFfn::kGlu;
  rope.activation = Activation::kSilu, rope.tied = false, rope.qk_gn = true;
  normed.clip_qkv = 0.8, normed.qk_ln = true, normed.kv_heads = 3, normed.sliding_window = 9;
  normed.activation = Activation::kQuickGelu;
  capped.attn_softcap = 1.5, capped.final_softcap = 4.0, capped.logit_scale = 0.7, capped.softmax_scale = 0.3;
  capped.embedding_fraction = 0.1, capped.ffn_width = 56, capped.activation = Activation::kRelu;
  all.push_back({"mpt_rope_gqa_glu_qk_gn", {rope}, {2, 17}});
  all.push_back({"mpt_clip_qk_ln_window", {normed}, {1, 40}});
  all.push_back({"mpt_caps", {capped}, {3, 11}});

  MptConfig warm = mpt(PositionKind::kRope), mixed = mpt(PositionKind::kRope),
            shared = mpt(PositionKind::kAlibi), chained = mpt(PositionKind::kRope);
  warm.temperature_tuning = {.attn_scale = 0.5, .floor_scale = 4};
  mixed.layers = 4, mixed.temperature_tuning = {.attn_scale = 0.3, .floor_scale = 5};
  mixed.blocks.kinds = {
      {"near", {.sliding_window = 6}},
      {"far", {.nope = true, .temperature_tuning = {.attn_scale = 0.6}}},
  };
  mixed.blocks.order = {"near", "default", "near", "far"};
  shared.layers = 4, shared.kv_heads = 2, shared.qk_gn = true, shared.clip_qkv = 0.9, shared.no_bias = true;
  shared.blocks.kinds = {
      {"again", {.reuse_kv = 1}},
      {"far_again", {.sliding_window = 5, .nope = true, .reuse_kv = 3}},
  };
  shared.blocks.order = {"default", "again", "default", "far_again"};
  chained.layers = 6, chained.kv_heads = 3, chained.qk_ln = true;
  chained.blocks.kinds = {
      {"again", {.temperature_tuning = {.attn_scale = 0.5, .floor_scale = 3}, .reuse_kv = 1}},
      {"near", {.sliding_window = 4}}};
  chained.blocks.order = {"near", "again", "again"};
  MptConfig inputs = mpt(PositionKind::kRope);
  inputs.layers = 6, inputs.kv_heads = 2, inputs.qk_gn = true, inputs.clip_qkv = 1.1;
  inputs.blocks.kinds = {
      {"input", {.sliding_window = 7, .reuse_kv_x = 1}},
      {"far_input", {.temperature_tuning = {.attn_scale = 0.4, .floor_scale = 6}, .reuse_kv_x = 3}},
      {"again", {.sliding_window = 9, .reuse_kv = 1}}};
  inputs.blocks.order = {"default", "input", "again", "input", "default", "far_input"};
  all.push_back({"mpt_reused_inputs", {inputs}, {2, 16}});
  all.push_back({"mpt_temperature", {warm}, {2, 19}});
  MptConfig xpos = shared;  // blocks that reuse keys have queries alone to scale
  xpos.blocks.kinds["far_again"].nope = false;
  xpos.positions = PositionKind::kRope, xpos.xpos_scale_base = 7, xpos.rope_theta = 500;
  all.push_back({"mpt_xpos", {xpos}, {2, 23}});
  all.push_back({"mpt_blocks_that_differ", {mixed}, {2, 21}});
  all.push_back({"mpt_reused_kv", {shared}, {2, 18}});
  all.push_back({"mpt_reused_kv_chains", {chained}, {1, 30}});

  MptConfig own = rope;  // kernels of the recipe's own function; the oracle uses the name
  own.activation.expression = silu_function();
  all.push_back({"mpt_glu_own_activation", {own}, {2, 17}});

  Gpt2Config gpt2;
  gpt2.width = 40, gpt2.layers = 2, gpt2.heads = 4, gpt2.vocab_size = 77, gpt2.max_seq_len = 40,
  gpt2.init_std = 0.2;
  all.push_back({"gpt2", {gpt2}, {2, 35}});
  gpt2.tied = false, gpt2.ffn_width = 24;
  all.push_back({"gpt2_untied", {gpt2}, {1, 40}});
  Gpt2Config own_gpt2 = gpt2;
  own_gpt2.activation = Activation::kQuickGelu, own_gpt2.activation.expression = quick_gelu_function();
  all.push_back({"gpt2_own_activation", {own_gpt2}, {2, 19}});
  for (ModelCase& adapted : adapter_cases(gpt2, inputs)) all.push_back(std::move(adapted));
  for (ModelCase& family : family_cases()) all.push_back(std::move(family));
  return all;
}

}  // namespace tycho
