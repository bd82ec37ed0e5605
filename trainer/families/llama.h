// Llama configuration.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "trainer/base/activation.h"
#include "trainer/base/fields.h"
#include "trainer/families/feed_forward_activation.h"
#include "trainer/families/rope_config.h"

namespace tycho {

/// Initialisation of a Llama's matrices: one standard deviation, or TorchTitan's, which depends on the depth.
enum class LlamaInit { kNormal, kTorchtitan };
constexpr EnumNames<LlamaInit, 2> enum_names(LlamaInit) {
  return {{{"normal", LlamaInit::kNormal}, {"torchtitan", LlamaInit::kTorchtitan}}};
}

/// Llama (Touvron et al. 2023, arXiv:2302.13971; Llama 3, arXiv:2407.21783): RMSNorm, rotary positions,
/// SwiGLU, grouped-query attention.
struct LlamaConfig {
  static constexpr const char* kKind = "llama";
  static constexpr const char* kHelp = "Llama: RMSNorm, RoPE, SwiGLU, grouped-query attention.";
  int64_t width = 256;
  int64_t layers = 4;
  int64_t heads = 4;
  std::optional<int64_t> kv_heads;
  std::optional<int64_t> head_width;
  int64_t ffn_width = 768;
  FeedForwardActivation activation = Activation::kSilu;
  int64_t vocab_size = 8192;
  std::optional<int64_t> max_seq_len;
  double rope_theta = 500000;
  RopeScalingConfig rope_scaling;
  double norm_eps = 1e-5;
  bool tied = false;
  bool attention_bias = false;
  bool ffn_bias = false;
  double attn_dropout = 0.0;
  LlamaInit init = LlamaInit::kNormal;
  double init_std = 0.02;
  std::string weights;

  template <class Visitor>
  void fields(Visitor& v) {
    v("width", width, "Width of the residual stream.", positive, multiple_of(8));
    v("layers", layers, "Number of transformer blocks.", positive);
    v("heads", heads, "Query heads.", positive);
    v("kv_heads", kv_heads, "Key and value heads; heads must be a multiple of it. Default: heads.", positive);
    v("head_width", head_width, "Width of one head; must be even. Default: width / heads.", positive,
      multiple_of(2));
    v("ffn_width", ffn_width, "Hidden width of the gated feed-forward layer.", positive, multiple_of(8));
    v("activation", activation, "Activation of the gate of the feed-forward layer (hidden_act).");
    v("vocab_size", vocab_size, "Rows of the embedding table; at least the tokenizer's size.", positive);
    v("max_seq_len", max_seq_len, "Longest sequence that the model is meant for. Default: seq_len.",
      positive);
    v("rope_theta", rope_theta, "Base of the rotary frequencies.", positive);
    v("rope_scaling", rope_scaling, "Rotary positions beyond the trained length (Llama 3.1: llama3).");
    v("norm_eps", norm_eps, "Added to the mean square in RMSNorm.", positive);
    v("tied", tied, "Also use the embedding table as the output head.");
    v("attention_bias", attention_bias, "Biases in the attention projections.");
    v("ffn_bias", ffn_bias, "Biases in the feed-forward layer.");
    v("attn_dropout", attn_dropout,
      "Dropout of the attention weights, after the softmax (attention_dropout).", below(0, 1));
    v("init", init,
      "Standard deviation of the initial weights. normal: init_std, projections back into the residual "
      "stream init_std / sqrt(2 layers); torchtitan: embeddings 1, the head width^-0.5, projections into the "
      "residual stream of block i init_std / sqrt(2 i).");
    v("init_std", init_std, "Standard deviation of the initial weights; see init.", positive);
    v("weights", weights,
      "Start from these weights: a Hugging Face folder, a run or a checkpoint. \"\" for random initial "
      "weights.");
  }
  int64_t num_kv_heads() const { return kv_heads.value_or(heads); }
  int64_t head_dim() const { return head_width.value_or(width / heads); }
};

struct DecoderSpec;
template <class Family>
struct HfFamily;
/// Returns the model in the terms of the one decoder.
DecoderSpec spec_of(const LlamaConfig& model);
/// Returns the family's name in config.json, and how its keys are read and written there.
const HfFamily<LlamaConfig>& hf_family(const LlamaConfig&);

}  // namespace tycho
