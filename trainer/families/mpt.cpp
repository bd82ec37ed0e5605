// MPT as a decoder.
#include "trainer/families/mpt.h"

#include <cmath>

#include "trainer/families/decoder_spec.h"

namespace tycho {
namespace {

Init uniform(double limit) { return {Init::Kind::kUniform, limit}; }

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

}  // namespace

DecoderSpec spec_of(const MptConfig& c) {
  DecoderSpec s = sized_spec(c, c.hidden());
  const bool rms = c.norm == MptNorm::kRmsNorm || c.norm == MptNorm::kLowPrecisionRmsNorm;
  s.norm.kind = rms ? NormKind::kRms : NormKind::kLayer;
  s.norm.bias = !rms && !c.no_bias;
  s.attention.qkv_bias = c.attention_bias.value_or(!c.no_bias);
  s.attention.out_bias = s.ffn.bias = !c.no_bias;
  s.ffn.gated = c.ffn == MptFfn::kGlu;
  if (c.positions == PositionKind::kLearned) s.positions.learned = c.max_seq_len;
  if (c.positions == PositionKind::kAlibi) s.positions.alibi_bias_max = c.alibi_bias_max;
  if (c.positions == PositionKind::kRope)
    s.positions.rotary = {{.theta = c.rope_theta,
                           .dim = c.head_dim(),
                           .scaling = c.rope_scaling,
                           .xpos_scale_base = c.xpos_scale_base.value_or(0)}};
  // Uses the width that heads have without head_width, as LLM Foundry does.
  const double usual_width = static_cast<double>(c.width) / static_cast<double>(c.heads);
  s.attention.softmax_scale = c.softmax_scale.value_or(1.0 / std::sqrt(usual_width));
  s.attention.softcap = c.attn_softcap.value_or(0);
  mpt_blocks(c, s.blocks);
  s.attention.clip_qkv = c.clip_qkv.value_or(0);
  s.attention.qk_norm = c.qk_ln ? QkNorm::kTogether : c.qk_gn ? QkNorm::kPerHead : QkNorm::kNone;
  // LLM Foundry does not pass norm and norm_eps to these: they are LayerNorms with its default.
  s.attention.qk.bias = !c.no_bias;
  s.residual.dropout = c.resid_dropout, s.embedding.dropout = c.embedding_dropout;
  s.embedding.fraction = c.embedding_fraction;
  s.logits.scale = c.logit_scale.value_or(1), s.logits.softcap = c.final_softcap.value_or(0);
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
             .final_norm = "transformer.norm_f"};
  // A block cannot have one matrix for two inputs, and then LLM Foundry fuses in no block.
  if (s.shares_x()) s.names.q = "attn.Wq", s.names.k = "attn.Wk", s.names.v = "attn.Wv";
  // LLM Foundry draws Wqkv head by head, so its fan-out is that of one head.
  const auto d = static_cast<double>(c.width), head = static_cast<double>(s.attention.head_dim),
             f = static_cast<double>(s.ffn.width), v = static_cast<double>(c.vocab_size);
  s.init = {mpt_embedding(c, c.vocab_size),
            mpt_embedding(c, c.max_seq_len),
            mpt_matrix(c, d, v),
            mpt_matrix(c, d, head),
            mpt_residual(c, s.attention.width()),
            mpt_matrix(c, d, f),
            mpt_matrix(c, d, f),
            mpt_residual(c, s.ffn.width)};
  s.init.draws_biases = c.init.name == InitScheme::kDefault;
  return s;
}

}  // namespace tycho
