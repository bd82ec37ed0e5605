// Qwen2 and Qwen3 as decoders, and the config.json of Qwen2ForCausalLM and Qwen3ForCausalLM.
#include "trainer/families/qwen.h"

#include "trainer/families/dense_hf.h"

namespace tycho {
namespace {

/// Returns the document with layer_types, and without a window that no block uses: block i slides from
/// max_window_layers on, where use_sliding_window is true.
Json canonical_qwen(Json document) {
  document = with_rope_parameters(std::move(document), 10000);
  const Json uses = document.value("use_sliding_window", Json(false));
  const Json window = uses == true ? document.value("sliding_window", Json(4096)) : Json(nullptr);
  const Json from = document.value("max_window_layers", Json(28));
  document["sliding_window"] = window;
  return with_layer_types(std::move(document), 32, [&](int64_t i) {
    return !window.is_null() && from.is_number_integer() && i >= from.get<int64_t>();
  });
}

template <class Family>
HfTable<Family> qwen_table() {
  HfTable<Family> table = with_rows<Family>(
      dense_table<Family>(),
      {window_key<Family>(),
       layer_types_key<Family>(),
       {"use_sliding_window",
        {},
        [](const Family& model) -> std::optional<Json> { return model.sliding_window.has_value(); }},
       activation_key<Family>("hidden_act"),
       must_be<Family>("use_mrope", {false, nullptr}, "positions are those of text")});
  add_irrelevant(table, {"max_window_layers"});
  return table;
}

template <class Family>
Family qwen_defaults() {
  Family model;
  model.width = 4096, model.layers = model.heads = 32, model.kv_heads = 32;
  model.ffn_width = 22016, model.vocab_size = 151936, model.max_seq_len = 32768;
  return model;
}

/// Sizes of Qwen2.5; those of Qwen2 are alike.
const HfPresets kQwen2Presets = {
    {"0.5b",
     R"({"hidden_size": 896, "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads":
       2, "intermediate_size": 4864, "vocab_size": 151936, "max_position_embeddings": 32768,
       "rope_theta": 1000000, "tie_word_embeddings": true})"},
    {"1.5b",
     R"({"hidden_size": 1536, "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads":
       2, "intermediate_size": 8960, "vocab_size": 151936, "max_position_embeddings": 131072,
       "rope_theta": 1000000, "tie_word_embeddings": true})"},
    {"3b",
     R"({"hidden_size": 2048, "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads":
       2, "intermediate_size": 11008, "vocab_size": 151936, "max_position_embeddings": 32768,
       "rope_theta": 1000000, "tie_word_embeddings": true})"},
    {"7b",
     R"({"hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads":
       4, "intermediate_size": 18944, "vocab_size": 152064, "max_position_embeddings": 131072,
       "rope_theta": 1000000})"},
    {"14b",
     R"({"hidden_size": 5120, "num_hidden_layers": 48, "num_attention_heads": 40, "num_key_value_heads":
       8, "intermediate_size": 13824, "vocab_size": 152064, "max_position_embeddings": 131072,
       "rope_theta": 1000000, "rms_norm_eps": 1e-05})"},
    {"32b",
     R"({"hidden_size": 5120, "num_hidden_layers": 64, "num_attention_heads": 40, "num_key_value_heads":
       8, "intermediate_size": 27648, "vocab_size": 152064, "max_position_embeddings": 131072,
       "rope_theta": 1000000, "rms_norm_eps": 1e-05})"},
    {"72b",
     R"({"hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads":
       8, "intermediate_size": 29568, "vocab_size": 152064, "max_position_embeddings": 131072,
       "rope_theta": 1000000, "rms_norm_eps": 1e-05})"}};

const HfPresets kQwen3Presets = {
    {"0.6b",
     R"({"hidden_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads":
       8, "head_dim": 128, "intermediate_size": 3072, "vocab_size": 151936, "max_position_embeddings":
       40960, "rope_theta": 1000000, "tie_word_embeddings": true})"},
    {"1.7b",
     R"({"hidden_size": 2048, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads":
       8, "head_dim": 128, "intermediate_size": 6144, "vocab_size": 151936, "max_position_embeddings":
       40960, "rope_theta": 1000000, "tie_word_embeddings": true})"},
    {"4b",
     R"({"hidden_size": 2560, "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads":
       8, "head_dim": 128, "intermediate_size": 9728, "vocab_size": 151936, "max_position_embeddings":
       40960, "rope_theta": 1000000, "tie_word_embeddings": true})"},
    {"8b",
     R"({"hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads":
       8, "head_dim": 128, "intermediate_size": 12288, "vocab_size": 151936, "max_position_embeddings":
       40960, "rope_theta": 1000000})"},
    {"14b",
     R"({"hidden_size": 5120, "num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads":
       8, "head_dim": 128, "intermediate_size": 17408, "vocab_size": 151936, "max_position_embeddings":
       40960, "rope_theta": 1000000})"},
    {"32b",
     R"({"hidden_size": 5120, "num_hidden_layers": 64, "num_attention_heads": 64, "num_key_value_heads":
       8, "head_dim": 128, "intermediate_size": 25600, "vocab_size": 151936, "max_position_embeddings":
       40960, "rope_theta": 1000000})"}};

}  // namespace

DecoderSpec spec_of(const Qwen2Config& c) {
  DecoderSpec s = dense_spec(c);
  s.attention.qkv_bias = true;
  set_windows(c, s);
  return s;
}

DecoderSpec spec_of(const Qwen3Config& c) {
  DecoderSpec s = dense_spec(c);
  s.attention.qkv_bias = s.attention.out_bias = c.attention_bias;
  set_qk_norm(QkNorm::kPerHead, s);
  set_windows(c, s);
  return s;
}

const HfFamily<Qwen2Config>& hf_family(const Qwen2Config&) {
  static const HfFamily<Qwen2Config> family = [] {
    HfTable<Qwen2Config> table = qwen_table<Qwen2Config>();
    add_irrelevant(table, {"attention_bias", "qkv_bias"});  // which the reference ignores
    return HfFamily<Qwen2Config>{.model_type = "qwen2",
                                 .architectures = {"Qwen2ForCausalLM", "Qwen2Model"},
                                 .defaults = qwen_defaults<Qwen2Config>(),
                                 .table = std::move(table),
                                 .canonical = canonical_qwen,
                                 .presets = kQwen2Presets};
  }();
  return family;
}

const HfFamily<Qwen3Config>& hf_family(const Qwen3Config&) {
  static const HfFamily<Qwen3Config> family = [] {
    Qwen3Config defaults = qwen_defaults<Qwen3Config>();
    defaults.head_width = 128;
    return HfFamily<Qwen3Config>{
        .model_type = "qwen3",
        .architectures = {"Qwen3ForCausalLM", "Qwen3Model"},
        .defaults = defaults,
        .table = with_rows<Qwen3Config>(qwen_table<Qwen3Config>(),
                                        {mapped("attention_bias", &Qwen3Config::attention_bias)}),
        .canonical = canonical_qwen,
        .presets = kQwen3Presets};
  }();
  return family;
}

}  // namespace tycho
