// MPT configuration: LLM Foundry's dense models.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "trainer/base/activation.h"
#include "trainer/base/fields.h"
#include "trainer/families/blocks_config.h"
#include "trainer/families/feed_forward_activation.h"
#include "trainer/families/rope_config.h"

namespace tycho {

enum class PositionKind { kLearned, kAlibi, kRope, kNone };
constexpr EnumNames<PositionKind, 4> enum_names(PositionKind) {
  return {{{"learned", PositionKind::kLearned},
           {"alibi", PositionKind::kAlibi},
           {"rope", PositionKind::kRope},
           {"none", PositionKind::kNone}}};
}

enum class MptNorm { kLowPrecisionLayerNorm, kLayerNorm, kLowPrecisionRmsNorm, kRmsNorm };
constexpr EnumNames<MptNorm, 4> enum_names(MptNorm) {
  return {{{"low_precision_layernorm", MptNorm::kLowPrecisionLayerNorm},
           {"layernorm", MptNorm::kLayerNorm},
           {"low_precision_rmsnorm", MptNorm::kLowPrecisionRmsNorm},
           {"rmsnorm", MptNorm::kRmsNorm}}};
}

enum class MptFfn { kMlp, kGlu };
constexpr EnumNames<MptFfn, 2> enum_names(MptFfn) {
  return {{{"mptmlp", MptFfn::kMlp}, {"mptglu", MptFfn::kGlu}}};
}

enum class InitScheme {
  kKaimingNormal,
  kKaimingUniform,
  kXavierNormal,
  kXavierUniform,
  kBaseline,
  kSmall,
  kNeox,
  kDefault,
};
constexpr EnumNames<InitScheme, 8> enum_names(InitScheme) {
  return {{{"kaiming_normal_", InitScheme::kKaimingNormal},
           {"kaiming_uniform_", InitScheme::kKaimingUniform},
           {"xavier_normal_", InitScheme::kXavierNormal},
           {"xavier_uniform_", InitScheme::kXavierUniform},
           {"baseline_", InitScheme::kBaseline},
           {"small_init_", InitScheme::kSmall},
           {"neox_init_", InitScheme::kNeox},
           {"default_", InitScheme::kDefault}}};
}

enum class FanMode { kFanIn, kFanOut };
constexpr EnumNames<FanMode, 2> enum_names(FanMode) {
  return {{{"fan_in", FanMode::kFanIn}, {"fan_out", FanMode::kFanOut}}};
}

/// The nonlinearities with a gain in torch.nn.init.calculate_gain.
enum class GainOf { kRelu, kLeakyRelu, kLinear, kSigmoid, kTanh, kSelu };
constexpr EnumNames<GainOf, 6> enum_names(GainOf) {
  return {{{"relu", GainOf::kRelu},
           {"leaky_relu", GainOf::kLeakyRelu},
           {"linear", GainOf::kLinear},
           {"sigmoid", GainOf::kSigmoid},
           {"tanh", GainOf::kTanh},
           {"selu", GainOf::kSelu}}};
}

/// Initialisation of an MPT's weights, like LLM Foundry's init_config.
struct MptInitConfig {
  InitScheme name = InitScheme::kKaimingNormal;
  std::optional<double> init_std;
  std::optional<double> init_gain;
  FanMode fan_mode = FanMode::kFanIn;
  GainOf init_nonlinearity = GainOf::kRelu;
  std::optional<double> emb_init_std;
  std::optional<double> emb_init_uniform_lim;
  std::optional<std::array<double, 2>> emb_init_uniform_range;
  bool init_div_is_residual = true;
  std::optional<double> residual_divisor;

  bool operator==(const MptInitConfig&) const = default;

  template <class Visitor>
  void fields(Visitor& v) {
    v("name", name, "Distribution of matrices; default_: like torch's own layers, including biases.");
    v("init_std", init_std, "baseline_: standard deviation.", positive);
    v("init_gain", init_gain,
      "xavier_*: factor of the deviation, 1 by default; kaiming_* for leaky_relu: its slope, Default 0.",
      positive);
    v("fan_mode", fan_mode, "kaiming_*: which side of a matrix determines its deviation.");
    v("init_nonlinearity", init_nonlinearity, "kaiming_*: the nonlinearity whose gain is used.");
    v("emb_init_std", emb_init_std, "Embeddings: normal with this deviation. Default: like matrices.",
      positive);
    v("emb_init_uniform_lim", emb_init_uniform_lim, "Embeddings: uniform in ±this. Default: like matrices.",
      positive);
    v("emb_init_uniform_range", emb_init_uniform_range,
      "Embeddings: uniform between these two (emb_init_uniform_lim as a list).");
    v("init_div_is_residual", init_div_is_residual,
      "Divide projections back into the residual stream by sqrt(2 layers).");
    v("residual_divisor", residual_divisor, "Divide them by this instead (init_div_is_residual as a number).",
      positive);
  }
};

/// MPT (MosaicML 2023), dense. Names shared by all families are Tycho's, others LLM Foundry's.
struct MptConfig {
  static constexpr const char* kKind = "mpt";
  static constexpr const char* kHelp =
      "MPT: LLM Foundry's dense models, with ALiBi, learned or rotary positions.";
  int64_t width = 2048;
  int64_t layers = 24;
  int64_t heads = 16;
  std::optional<int64_t> kv_heads;
  std::optional<int64_t> head_width;
  double expansion_ratio = 4;
  std::optional<int64_t> ffn_width;
  int64_t vocab_size = 50368;
  int64_t max_seq_len = 2048;
  PositionKind positions = PositionKind::kLearned;
  double alibi_bias_max = 8;
  double rope_theta = 10000;
  RopeScalingConfig rope_scaling;
  std::optional<double> xpos_scale_base;
  MptNorm norm = MptNorm::kLowPrecisionLayerNorm;
  double norm_eps = 1e-5;
  MptFfn ffn = MptFfn::kMlp;
  FeedForwardActivation activation = Activation::kGelu;
  bool no_bias = false;
  std::optional<bool> attention_bias;
  std::optional<double> clip_qkv;
  bool qk_ln = false;
  bool qk_gn = false;
  std::optional<double> softmax_scale;
  std::optional<double> attn_softcap;
  int64_t sliding_window = -1;
  TemperatureTuningConfig temperature_tuning;
  BlocksConfig blocks;
  double attn_dropout = 0.0;
  double resid_dropout = 0.0;
  double embedding_dropout = 0.0;
  double embedding_fraction = 1.0;
  bool tied = true;
  std::optional<double> logit_scale;
  std::optional<double> final_softcap;
  MptInitConfig init;
  std::string weights;

  template <class Visitor>
  void fields(Visitor& v) {
    v("width", width, "Width of the residual stream (d_model).", positive, multiple_of(8));
    v("layers", layers, "Number of transformer blocks (n_layers).", positive);
    v("heads", heads, "Query heads (n_heads).", positive);
    v("kv_heads", kv_heads,
      "Key and value heads (kv_n_heads); heads must be a multiple of it. Default: heads.", positive);
    v("head_width", head_width, "Width of one head (head_dim). Default: width / heads.", positive);
    v("expansion_ratio", expansion_ratio, "Hidden width of the feed-forward layer, as a multiple of width.",
      positive);
    v("ffn_width", ffn_width,
      "Hidden width of the feed-forward layer (ffn_hidden_size). Default: expansion_ratio x width.",
      positive);
    v("vocab_size", vocab_size, "Rows of the embedding table; at least the tokenizer's size.", positive);
    v("max_seq_len", max_seq_len, "Longest sequence, and the rows of the table of learned positions.",
      positive);
    v("positions", positions, "learned, alibi (Press et al. 2022), rope (Su et al. 2021) or none.");
    v("alibi_bias_max", alibi_bias_max, "ALiBi: the steepest slope is 2^(-alibi_bias_max / heads).",
      positive);
    v("rope_theta", rope_theta, "Base of the rotary frequencies.", positive);
    v("rope_scaling", rope_scaling, "Rotary positions beyond the trained length.");
    v("xpos_scale_base", xpos_scale_base,
      "xPos (Sun et al. 2023): scores decay with distance, more slowly if this is large; usually 512.",
      positive);
    v("norm", norm,
      "Kind of norm; low_precision: inputs are in the compute dtype, which is always the case here.");
    v("norm_eps", norm_eps, "Added to the variance.", positive);
    v("ffn", ffn, "mptmlp: down(act(up(x))); mptglu: down(act(gate(x)) up(x)).");
    v("activation", activation, "Activation of the feed-forward layer (ffn_act_fn).");
    v("no_bias", no_bias, "No biases anywhere, including norms.");
    v("attention_bias", attention_bias,
      "Biases in the attention projections. Default: the opposite of no_bias.");
    v("clip_qkv", clip_qkv, "Clamp queries, keys and values to ±this.", positive);
    v("qk_ln", qk_ln, "Normalise queries and keys, each over all heads together.");
    v("qk_gn", qk_gn, "Normalise queries and keys, each head separately.");
    v("softmax_scale", softmax_scale, "Factor of the scores. Default: 1 / sqrt(width / heads).", positive);
    v("attn_softcap", attn_softcap, "Scores become c tanh(score / c) (attn_logit_softcapping).", positive);
    v("sliding_window", sliding_window,
      "Number of keys before its own that a query attends to (sliding_window_size); -1: all.", at_least(-1));
    v("temperature_tuning", temperature_tuning,
      "Scale up queries at distant positions (attn_temperature_tuning).");
    v("blocks", blocks, "Blocks that differ from each other (block_overrides).");
    v("attn_dropout", attn_dropout, "Dropout of the attention weights, after the softmax (attn_pdrop).",
      below(0, 1));
    v("resid_dropout", resid_dropout, "Dropout of what is added to the residual stream (resid_pdrop).",
      below(0, 1));
    v("embedding_dropout", embedding_dropout, "Dropout of the embeddings (emb_pdrop).", below(0, 1));
    v("embedding_fraction", embedding_fraction,
      "Share of the gradient that reaches the embeddings (GLM-130B).", positive, at_most(1));
    v("tied", tied, "Also use the embedding table as the output head (tie_word_embeddings).");
    v("logit_scale", logit_scale, "Factor of the logits.", positive);
    v("final_softcap", final_softcap, "Logits become c tanh(logit / c) (final_logit_softcapping).", positive);
    v("init", init, "Initialisation of the weights (init_config).");
    v("weights", weights,
      "Start from these weights: a Hugging Face folder, a run or a checkpoint. \"\" for random initial "
      "weights.");
  }
  int64_t num_kv_heads() const { return kv_heads.value_or(heads); }
  int64_t head_dim() const { return head_width.value_or(width / heads); }
  int64_t hidden() const {
    return ffn_width.value_or(static_cast<int64_t>(expansion_ratio * static_cast<double>(width)));
  }
};

struct DecoderSpec;
template <class Family>
struct HfFamily;
/// Returns the model in the terms of the one decoder.
DecoderSpec spec_of(const MptConfig& model);
/// Returns the family's name in config.json, and how its keys are read and written there.
const HfFamily<MptConfig>& hf_family(const MptConfig&);

}  // namespace tycho
