// Gemma 2 and 3 as decoders, and the config.json of Gemma2ForCausalLM and Gemma3ForCausalLM.
#include "trainer/families/gemma.h"

#include <cmath>

#include "trainer/families/dense_hf.h"

namespace tycho {
namespace {

template <class Family>
DecoderSpec gemma_spec(const Family& c) {
  DecoderSpec s = dense_spec(c);
  s.norm.weight_offset = 1;
  s.norm_position = NormPosition::kBoth;
  s.names.norm1_after = "post_attention_layernorm";
  s.names.norm2 = "pre_feedforward_layernorm";
  s.names.norm2_after = "post_feedforward_layernorm";
  s.embedding.scale = std::sqrt(static_cast<double>(c.width));
  s.attention.softmax_scale = 1 / std::sqrt(c.query_pre_attn_scalar);
  s.logits.softcap = c.final_softcap.value_or(0);
  set_windows(c, s);
  return s;
}

Json canonical_gemma2(Json document) {
  document = with_rope_parameters(std::move(document), 10000);
  return with_layer_types(std::move(document), 26, [](int64_t i) { return i % 2 == 0; });
}

Json canonical_gemma3(Json document) {
  document = with_rope_parameters_by_type(std::move(document), 1000000, "rope_local_base_freq", 10000);
  const Json pattern = document.value("sliding_window_pattern", Json(6));
  const int64_t every = pattern.is_number_integer() && pattern > 0 ? pattern.get<int64_t>() : 6;
  return with_layer_types(std::move(document), 26, [&](int64_t i) { return (i + 1) % every != 0; });
}

/// Returns the rows that both have. softcaps: 0 is not "none" to the reference, which divides by it.
template <class Family>
HfTable<Family> gemma_table(HfTable<Family> table) {
  HfKey<Family> scalar = mapped<Family>("query_pre_attn_scalar", &Family::query_pre_attn_scalar, positive);
  scalar.write = [](const Family& model) -> std::optional<Json> {
    return whole_if_possible(model.query_pre_attn_scalar);
  };
  table = with_rows<Family>(
      std::move(table),
      {window_key<Family>(kIdleWindow), layer_types_key<Family>(), std::move(scalar),
       mapped<Family>("final_logit_softcapping", &Family::final_softcap, positive),
       activation_key<Family>("hidden_activation"),
       must_be<Family>("attention_bias", {false, nullptr}, "biases of attention are not read yet"),
       must_be<Family>("use_bidirectional_attention", {false, nullptr}, "only decoders can be imported")});
  add_irrelevant(table, {"hidden_act", "cache_implementation", "_sliding_window_pattern",
                         "sliding_window_pattern", "sliding_window_size"});
  return table;
}

template <class Family>
Family gemma_defaults(int64_t vocab_size, int64_t max_seq_len) {
  Family model;
  model.width = 2304, model.layers = 26, model.heads = 8, model.kv_heads = 4;
  model.ffn_width = 9216, model.vocab_size = vocab_size, model.max_seq_len = max_seq_len;
  model.sliding_window = 4095;
  return model;
}

HfTable<Gemma3Config> gemma3_table() {
  HfTable<Gemma3Config> table = dense_table<Gemma3Config>();
  for (HfKey<Gemma3Config>& key : table)
    if (key.name == "rope_parameters") key = rope_by_type<Gemma3Config>();
  table = with_rows<Gemma3Config>(
      gemma_table(std::move(table)),
      {{"rope_local_base_freq", {}, [](const Gemma3Config& model) -> std::optional<Json> {
          return model.rope_local_theta;
        }}});
  add_irrelevant(table, {"attn_logit_softcapping"});  // the reference does not pass it to attention
  return table;
}

const HfPresets kGemma2Presets = {
    {"2b",
     R"({"hidden_size": 2304, "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads":
       4, "head_dim": 256, "intermediate_size": 9216, "vocab_size": 256000, "query_pre_attn_scalar": 256})"},
    {"9b",
     R"({"hidden_size": 3584, "num_hidden_layers": 42, "num_attention_heads": 16, "num_key_value_heads":
       8, "head_dim": 256, "intermediate_size": 14336, "vocab_size": 256000, "query_pre_attn_scalar":
       256})"},
    {"27b",
     R"({"hidden_size": 4608, "num_hidden_layers": 46, "num_attention_heads": 32, "num_key_value_heads":
       16, "head_dim": 128, "intermediate_size": 36864, "vocab_size": 256000, "query_pre_attn_scalar":
       144})"}};

const HfPresets kGemma3Presets = {
    {"270m",
     R"({"hidden_size": 640, "num_hidden_layers": 18, "num_attention_heads": 4, "num_key_value_heads": 1,
       "head_dim": 256, "intermediate_size": 2048, "vocab_size": 262144, "max_position_embeddings":
       32768, "sliding_window": 512})"},
    {"1b",
     R"({"hidden_size": 1152, "num_hidden_layers": 26, "num_attention_heads": 4, "num_key_value_heads":
       1, "head_dim": 256, "intermediate_size": 6912, "vocab_size": 262144, "max_position_embeddings":
       32768, "sliding_window": 512})"},
    {"4b",
     R"({"hidden_size": 2560, "num_hidden_layers": 34, "num_attention_heads": 8, "num_key_value_heads":
       4, "head_dim": 256, "intermediate_size": 10240, "vocab_size": 262208, "sliding_window": 1024,
       "rope_scaling": {"rope_type": "linear", "factor": 8.0}})"},
    {"12b",
     R"({"hidden_size": 3840, "num_hidden_layers": 48, "num_attention_heads": 16, "num_key_value_heads":
       8, "head_dim": 256, "intermediate_size": 15360, "vocab_size": 262208, "sliding_window": 1024,
       "rope_scaling": {"rope_type": "linear", "factor": 8.0}})"},
    {"27b",
     R"({"hidden_size": 5376, "num_hidden_layers": 62, "num_attention_heads": 32, "num_key_value_heads":
       16, "head_dim": 128, "intermediate_size": 21504, "vocab_size": 262208, "sliding_window": 1024,
       "rope_scaling": {"rope_type": "linear", "factor": 8.0}, "query_pre_attn_scalar": 168})"}};

}  // namespace

DecoderSpec spec_of(const Gemma2Config& c) {
  DecoderSpec s = gemma_spec(c);
  s.attention.softcap = c.attn_softcap.value_or(0);
  return s;
}

DecoderSpec spec_of(const Gemma3Config& c) {
  DecoderSpec s = gemma_spec(c);
  set_qk_norm(QkNorm::kPerHead, s);
  add_local_rotary(c, c.rope_local_theta, s);
  return s;
}

const HfFamily<Gemma2Config>& hf_family(const Gemma2Config&) {
  static const HfFamily<Gemma2Config> family = {
      .model_type = "gemma2",
      .architectures = {"Gemma2ForCausalLM", "Gemma2Model"},
      .defaults = gemma_defaults<Gemma2Config>(256000, 8192),
      .table =
          with_rows<Gemma2Config>(gemma_table(dense_table<Gemma2Config>()),
                                  {mapped("attn_logit_softcapping", &Gemma2Config::attn_softcap, positive)}),
      .canonical = canonical_gemma2,
      .presets = kGemma2Presets};
  return family;
}

const HfFamily<Gemma3Config>& hf_family(const Gemma3Config&) {
  static const HfFamily<Gemma3Config> family = {.model_type = "gemma3_text",
                                                .architectures = {"Gemma3ForCausalLM", "Gemma3TextModel"},
                                                .defaults = gemma_defaults<Gemma3Config>(262208, 131072),
                                                .table = gemma3_table(),
                                                .canonical = canonical_gemma3,
                                                .presets = kGemma3Presets};
  return family;
}

}  // namespace tycho
