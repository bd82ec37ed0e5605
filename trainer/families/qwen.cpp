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
       only<Family>("hidden_act", {"silu", "swish"}, "this is not Qwen's architecture"),
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
  s.attention.qk_norm = QkNorm::kPerHead;
  s.attention.qk = s.norm;
  s.names.q_norm = "self_attn.q_norm", s.names.k_norm = "self_attn.k_norm";
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
                                 .canonical = canonical_qwen};
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
        .canonical = canonical_qwen};
  }();
  return family;
}

}  // namespace tycho
