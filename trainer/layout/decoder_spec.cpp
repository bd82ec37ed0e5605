// Llama, MPT and GPT-2 as decoder specs.
#include "trainer/layout/decoder_spec.h"

#include <cmath>

namespace tycho {
namespace {

Init normal(double std) { return {Init::Kind::kNormal, std}; }
Init uniform(double limit) { return {Init::Kind::kUniform, limit}; }

double residual_divisor(int64_t layers) { return std::sqrt(2.0 * static_cast<double>(layers)); }

/// Returns normal weights of one deviation, smaller where they lead back into the residual stream.
DecoderInit normal_init(double std, int64_t layers) {
  const Init matrix = normal(std), residual = normal(std / residual_divisor(layers));
  return {matrix, matrix, matrix, matrix, residual, matrix, matrix, residual};
}

/// Returns the init of TorchTitan's Llama (v0.2, depth_init): up is scaled by depth as out and down are, gate
/// is not. Its bounds of the matrices, ±2, are a hundred deviations away, so they are drawn as plain normal
/// numbers.
DecoderInit torchtitan_init(const LlamaConfig& c) {
  const Init matrix = normal(c.init_std);
  const Init head = {Init::Kind::kCutNormal, 1 / std::sqrt(static_cast<double>(c.width))};
  DecoderInit init = {c.tied ? head : normal(1), {}, head, matrix, matrix, matrix, matrix, matrix};
  init.by_depth = true;
  return init;
}

/// Returns a spec with the fields that every family's config has under the same name.
template <class Family>
DecoderSpec sized(const Family& c, int64_t ffn_width) {
  DecoderSpec s;
  s.width = c.width, s.layers = c.layers, s.heads = s.all_heads = c.heads, s.kv_heads = c.num_kv_heads();
  s.head_dim = c.head_dim(), s.ffn_width = ffn_width, s.vocab_size = c.vocab_size;
  s.norm_eps = c.norm_eps;
  s.softmax_scale = 1.0 / std::sqrt(static_cast<double>(s.head_dim));
  s.attn_dropout = c.attn_dropout;
  s.tied = c.tied;
  s.blocks.resize(static_cast<size_t>(c.layers));
  for (int64_t i = 0; i < c.layers; ++i)
    s.blocks[static_cast<size_t>(i)].kv_block = s.blocks[static_cast<size_t>(i)].x_block = i;
  return s;
}

/// Returns the square of torch.nn.init.calculate_gain.
double squared_gain(const MptInitConfig& init) {
  switch (init.init_nonlinearity) {
    case GainOf::kRelu: return 2;
    case GainOf::kLeakyRelu: return 2 / (1 + std::pow(init.init_gain.value_or(0), 2));
    case GainOf::kTanh: return 25.0 / 9;
    case GainOf::kSelu: return 9.0 / 16;
    case GainOf::kLinear:
    case GainOf::kSigmoid: break;
  }
  return 1;
}

/// Returns the init of a matrix [fan_out, fan_in] by MPT's init_config.
Init mpt_matrix(const MptConfig& c, double fan_in, double fan_out) {
  const double per_fan = squared_gain(c.init) / (c.init.fan_mode == FanMode::kFanIn ? fan_in : fan_out);
  const double gain = c.init.init_gain.value_or(1), both = fan_in + fan_out;
  switch (c.init.name) {
    case InitScheme::kKaimingNormal: return normal(std::sqrt(per_fan));
    case InitScheme::kKaimingUniform: return uniform(std::sqrt(3 * per_fan));
    case InitScheme::kXavierNormal: return normal(gain * std::sqrt(2.0 / both));
    case InitScheme::kXavierUniform: return uniform(gain * std::sqrt(6.0 / both));
    case InitScheme::kBaseline: return normal(c.init.init_std.value_or(0.02));
    case InitScheme::kSmall:
    case InitScheme::kNeox: return normal(std::sqrt(2.0 / (5.0 * static_cast<double>(c.width))));
    case InitScheme::kDefault: return uniform(1 / std::sqrt(fan_in));
  }
  return {};
}

Init mpt_embedding(const MptConfig& c, int64_t rows) {
  if (c.init.name == InitScheme::kDefault) return normal(1);
  if (c.init.emb_init_std) return normal(*c.init.emb_init_std);
  if (c.init.emb_init_uniform_lim) return uniform(*c.init.emb_init_uniform_lim);
  if (const auto& range = c.init.emb_init_uniform_range)
    return {Init::Kind::kUniform, ((*range)[1] - (*range)[0]) / 2, ((*range)[0] + (*range)[1]) / 2};
  return mpt_matrix(c, static_cast<double>(c.width), static_cast<double>(rows));
}

/// Returns the init of a projection back into the residual stream.
Init mpt_residual(const MptConfig& c, int64_t fan_in) {
  Init init = mpt_matrix(c, static_cast<double>(fan_in), static_cast<double>(c.width));
  if (c.init.name == InitScheme::kNeox)
    init.scale *= std::sqrt(10.0) / static_cast<double>(c.layers);
  else if (c.init.init_div_is_residual && c.init.name != InitScheme::kDefault)
    init.scale /= c.init.residual_divisor.value_or(residual_divisor(c.layers));
  return init;
}

/// Sets the blocks by their kinds. A block that reuses the keys or input of a block that reuses another's
/// gets the original block.
void mpt_blocks(const MptConfig& c, std::vector<BlockSpec>& blocks) {
  for (size_t i = 0; i < blocks.size(); ++i) {
    const BlockKindConfig& kind = c.blocks.kind_of(static_cast<int64_t>(i));
    const TemperatureTuningConfig &own = kind.temperature_tuning, &all = c.temperature_tuning;
    BlockSpec& block = blocks[i];
    block.window = kind.sliding_window.value_or(c.sliding_window);
    block.positions = !kind.nope;
    block.attn_scale = own.attn_scale.value_or(all.attn_scale.value_or(block.attn_scale));
    block.floor_scale = own.floor_scale.value_or(all.floor_scale.value_or(block.floor_scale));
    if (kind.reuse_kv) block.kv_block = blocks[i - static_cast<size_t>(*kind.reuse_kv)].kv_block;
    if (kind.reuse_kv_x) block.x_block = blocks[i - static_cast<size_t>(*kind.reuse_kv_x)].x_block;
  }
}

DecoderSpec spec_of(const LlamaConfig& c) {
  DecoderSpec s = sized(c, c.ffn_width);
  s.qkv_bias = s.out_bias = c.attention_bias;
  s.ffn_bias = c.ffn_bias;
  s.rope_theta = c.rope_theta;
  s.rope_scaling = c.rope_scaling;
  s.names = {.embedding = "model.embed_tokens",
             .positions = "",
             .block = "model.layers.",
             .norm1 = "input_layernorm",
             .norm2 = "post_attention_layernorm",
             .q_norm = "",
             .k_norm = "",
             .q = "self_attn.q_proj",
             .k = "self_attn.k_proj",
             .v = "self_attn.v_proj",
             .q_alone = "",
             .out = "self_attn.o_proj",
             .gate = "mlp.gate_proj",
             .up = "mlp.up_proj",
             .down = "mlp.down_proj",
             .final_norm = "model.norm",
             .head = "lm_head"};
  s.init = c.init == LlamaInit::kTorchtitan ? torchtitan_init(c) : normal_init(c.init_std, c.layers);
  return s;
}

DecoderSpec spec_of(const MptConfig& c) {
  DecoderSpec s = sized(c, c.hidden());
  const bool rms = c.norm == MptNorm::kRmsNorm || c.norm == MptNorm::kLowPrecisionRmsNorm;
  s.norm = rms ? NormKind::kRms : NormKind::kLayer;
  s.norm_bias = !rms && !c.no_bias;
  s.qkv_bias = c.attention_bias.value_or(!c.no_bias);
  s.out_bias = s.ffn_bias = !c.no_bias;
  s.gated = c.ffn == MptFfn::kGlu;
  s.activation = c.activation;
  if (c.positions == PositionKind::kLearned) s.learned_positions = c.max_seq_len;
  if (c.positions == PositionKind::kAlibi) s.alibi_bias_max = c.alibi_bias_max;
  if (c.positions == PositionKind::kRope) s.rope_theta = c.rope_theta;
  s.xpos_scale_base = c.xpos_scale_base.value_or(0);
  s.rope_scaling = c.rope_scaling;
  // Uses the width that heads have without head_width, as LLM Foundry does.
  const double usual_width = static_cast<double>(c.width) / static_cast<double>(c.heads);
  s.softmax_scale = c.softmax_scale.value_or(1.0 / std::sqrt(usual_width));
  s.attn_softcap = c.attn_softcap.value_or(0);
  mpt_blocks(c, s.blocks);
  s.clip_qkv = c.clip_qkv.value_or(0);
  s.qk_norm = c.qk_ln ? QkNorm::kTogether : c.qk_gn ? QkNorm::kPerHead : QkNorm::kNone;
  // LLM Foundry does not pass norm and norm_eps to these: they are LayerNorms with its default.
  s.qk_norm_bias = !c.no_bias;
  s.resid_dropout = c.resid_dropout, s.embedding_dropout = c.embedding_dropout;
  s.embedding_fraction = c.embedding_fraction;
  s.logit_scale = c.logit_scale.value_or(1), s.final_softcap = c.final_softcap.value_or(0);
  s.names = {.embedding = "transformer.wte",
             .positions = "transformer.wpe",
             .block = "transformer.blocks.",
             .norm1 = "norm_1",
             .norm2 = "norm_2",
             .q_norm = "attn.q_ln",
             .k_norm = "attn.k_ln",
             .q = "attn.Wqkv",
             .k = "",
             .v = "",
             .q_alone = "attn.Wq",
             .out = "attn.out_proj",
             .gate = "ffn.gate_proj",
             .up = "ffn.up_proj",
             .down = "ffn.down_proj",
             .final_norm = "transformer.norm_f",
             .head = "lm_head"};
  // A block cannot have one matrix for two inputs, and then LLM Foundry fuses in no block.
  if (s.shares_x()) s.names.q = "attn.Wq", s.names.k = "attn.Wk", s.names.v = "attn.Wv";
  // LLM Foundry draws Wqkv head by head, so its fan-out is that of one head.
  const auto d = static_cast<double>(c.width), head = static_cast<double>(s.head_dim),
             f = static_cast<double>(s.ffn_width), v = static_cast<double>(c.vocab_size);
  s.init = {mpt_embedding(c, c.vocab_size),
            mpt_embedding(c, c.max_seq_len),
            mpt_matrix(c, d, v),
            mpt_matrix(c, d, head),
            mpt_residual(c, s.attention_width()),
            mpt_matrix(c, d, f),
            mpt_matrix(c, d, f),
            mpt_residual(c, s.ffn_width)};
  s.init.draws_biases = c.init.name == InitScheme::kDefault;
  return s;
}

DecoderSpec spec_of(const Gpt2Config& c) {
  DecoderSpec s = sized(c, c.hidden());
  s.norm = NormKind::kLayer;
  s.norm_bias = s.qkv_bias = s.out_bias = s.ffn_bias = true;
  s.gated = false;
  s.activation = c.activation;
  s.in_out = true;
  s.learned_positions = c.max_seq_len;
  s.resid_dropout = c.resid_dropout, s.embedding_dropout = c.embedding_dropout;
  s.names = {.embedding = "transformer.wte",
             .positions = "transformer.wpe",
             .block = "transformer.h.",
             .norm1 = "ln_1",
             .norm2 = "ln_2",
             .q_norm = "",
             .k_norm = "",
             .q = "attn.c_attn",
             .k = "",
             .v = "",
             .q_alone = "",
             .out = "attn.c_proj",
             .gate = "",
             .up = "mlp.c_fc",
             .down = "mlp.c_proj",
             .final_norm = "transformer.ln_f",
             .head = "lm_head"};
  s.init = normal_init(c.init_std, c.layers);
  return s;
}

}  // namespace

int64_t DecoderSpec::last_user_of_kv(int64_t i) const {
  int64_t last = layers - 1;
  while (block(last).kv_block != i) --last;
  return last;
}

int64_t DecoderSpec::last_user_of_x(int64_t i) const {
  int64_t last = layers - 1;
  while (block(last).x_block != i) --last;
  return last;
}

bool DecoderSpec::shares_kv() const {
  for (int64_t i = 0; i < layers; ++i)
    if (reuses_kv(i)) return true;
  return false;
}

bool DecoderSpec::shares_x() const {
  for (int64_t i = 0; i < layers; ++i)
    if (reuses_x(i)) return true;
  return false;
}

DecoderSpec decoder_spec(const ModelConfig& config) {
  DecoderSpec spec = std::visit([](const auto& family) { return spec_of(family); }, config.value);
  spec.lora = config.lora;
  return spec;
}

std::vector<float> alibi_slopes(int64_t heads, double bias_max) {
  int64_t power = 1;
  while (power < heads) power *= 2;
  const auto slope = [&](int64_t i) {
    return static_cast<float>(std::exp2(-static_cast<double>(i) * bias_max / static_cast<double>(power)));
  };
  std::vector<float> slopes;
  if (power == heads) {
    for (int64_t i = 1; i <= heads; ++i) slopes.push_back(slope(i));
    return slopes;
  }
  for (int64_t i = 2; i <= power; i += 2) slopes.push_back(slope(i));
  for (int64_t i = 1; i <= power; i += 2) slopes.push_back(slope(i));
  slopes.resize(static_cast<size_t>(heads));
  return slopes;
}

}  // namespace tycho
