// The keys that today's dense families share.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/activation.h"
#include "trainer/base/fields.h"
#include "trainer/families/feed_forward_activation.h"
#include "trainer/families/rope_config.h"

namespace tycho {

/// A family of Llama's kind: RMSNorm, rotary positions, a gated feed-forward, grouped-query attention. A
/// family sets its defaults in its constructor and adds its own keys.
struct DenseConfig {
  int64_t width = 256;
  int64_t layers = 4;
  int64_t heads = 4;
  std::optional<int64_t> kv_heads;
  std::optional<int64_t> head_width;
  int64_t ffn_width = 768;
  FeedForwardActivation activation = Activation::kSilu;
  int64_t vocab_size = 8192;
  std::optional<int64_t> max_seq_len;
  double rope_theta = 10000;
  RopeScalingConfig rope_scaling;
  double norm_eps = 1e-6;
  bool tied = false;
  double attn_dropout = 0.0;
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
    v("rope_scaling", rope_scaling, "Rotary positions beyond the trained length.");
    v("norm_eps", norm_eps, "Added to the mean square in RMSNorm.", positive);
    v("tied", tied, "Also use the embedding table as the output head.");
    v("attn_dropout", attn_dropout,
      "Dropout of the attention weights, after the softmax (attention_dropout).", below(0, 1));
    v("init_std", init_std,
      "Standard deviation of the initial weights; projections back into the residual stream have init_std / "
      "sqrt(2 layers).",
      positive);
    v("weights", weights,
      "Start from these weights: a Hugging Face folder, a run or a checkpoint. \"\" for random initial "
      "weights.");
  }
  int64_t num_kv_heads() const { return kv_heads.value_or(heads); }
  int64_t head_dim() const { return head_width.value_or(width / heads); }
};

enum class LayerType { kFull, kSliding };
constexpr EnumNames<LayerType, 2> enum_names(LayerType) {
  return {{{"full", LayerType::kFull}, {"sliding", LayerType::kSliding}}};
}

/// The keys of families whose blocks may attend to a window.
struct WindowedConfig : DenseConfig {
  std::optional<int64_t> sliding_window;
  std::vector<LayerType> layer_types;

  template <class Visitor>
  void fields(Visitor& v) {
    DenseConfig::fields(v);
    v("sliding_window", sliding_window,
      "Number of keys before its own that a query attends to in sliding blocks (one less than in Hugging "
      "Face's files, which count the query's own). Default: all.",
      at_least(0));
    v("layer_types", layer_types,
      "Attention of the blocks, first to last, repeated until every block has one: \"full\" or \"sliding\". "
      "Default: all blocks slide where there is a window.");
  }
  LayerType layer_type(int64_t block) const {
    if (layer_types.empty()) return sliding_window ? LayerType::kSliding : LayerType::kFull;
    return layer_types[static_cast<size_t>(block) % layer_types.size()];
  }
};

}  // namespace tycho
