// GPT-2 configuration.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "trainer/base/activation.h"
#include "trainer/base/fields.h"
#include "trainer/families/feed_forward_activation.h"

namespace tycho {

/// GPT-2 (Radford et al. 2019): LayerNorm, learned positions, GELU, biases, tied head.
struct Gpt2Config {
  static constexpr const char* kKind = "gpt2";
  static constexpr const char* kHelp =
      "GPT-2: LayerNorm, learned positions, GELU, biases everywhere, tied head.";
  int64_t width = 768;
  int64_t layers = 12;
  int64_t heads = 12;
  std::optional<int64_t> ffn_width;
  int64_t vocab_size = 50257;
  int64_t max_seq_len = 1024;
  FeedForwardActivation activation = Activation::kGeluTanh;
  double norm_eps = 1e-5;
  bool tied = true;
  double attn_dropout = 0.0;
  double resid_dropout = 0.0;
  double embedding_dropout = 0.0;
  double init_std = 0.02;
  std::string weights;

  template <class Visitor>
  void fields(Visitor& v) {
    v("width", width, "Width of the residual stream (n_embd).", positive, multiple_of(8));
    v("layers", layers, "Number of transformer blocks (n_layer).", positive);
    v("heads", heads, "Attention heads (n_head).", positive);
    v("ffn_width", ffn_width, "Hidden width of the feed-forward layer (n_inner). Default: 4 x width.",
      positive, multiple_of(8));
    v("vocab_size", vocab_size, "Rows of the embedding table; at least the tokenizer's size.", positive);
    v("max_seq_len", max_seq_len, "Rows of the position table (n_positions).", positive);
    v("activation", activation,
      "Activation of the feed-forward layer; gelu_tanh is Hugging Face's gelu_new.");
    v("norm_eps", norm_eps, "Added to the variance in LayerNorm.", positive);
    v("tied", tied, "Also use the embedding table as the output head.");
    v("attn_dropout", attn_dropout, "Dropout of the attention weights, after the softmax (attn_pdrop).",
      below(0, 1));
    v("resid_dropout", resid_dropout, "Dropout of what is added to the residual stream (resid_pdrop).",
      below(0, 1));
    v("embedding_dropout", embedding_dropout, "Dropout of the embeddings (embd_pdrop).", below(0, 1));
    v("init_std", init_std,
      "Standard deviation of the initial weights; projections back into the residual stream get "
      "init_std / sqrt(2 layers).",
      positive);
    v("weights", weights,
      "Start from these weights: a Hugging Face folder, a run or a checkpoint. \"\" for random initial "
      "weights.");
  }
  int64_t num_kv_heads() const { return heads; }
  int64_t head_dim() const { return width / heads; }
  int64_t hidden() const { return ffn_width.value_or(4 * width); }
};

struct DecoderSpec;
template <class Family>
struct HfFamily;
/// Returns the model in the terms of the one decoder.
DecoderSpec spec_of(const Gpt2Config& model);
/// Returns the family's name in config.json, and how its keys are read and written there.
const HfFamily<Gpt2Config>& hf_family(const Gpt2Config&);

}  // namespace tycho
