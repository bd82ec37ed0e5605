// Granite as a decoder, and the config.json of GraniteForCausalLM.
#include "trainer/families/granite.h"

#include "trainer/families/dense_hf.h"

namespace tycho {
namespace {

double attention_multiplier(const GraniteConfig& c) {
  return c.attention_multiplier.value_or(1 / static_cast<double>(c.head_dim()));
}

Json canonical_granite(Json document) { return with_rope_parameters(std::move(document), 10000); }

HfTable<GraniteConfig> granite_table() {
  using Family = GraniteConfig;
  HfKey<Family> scores = mapped("attention_multiplier", &Family::attention_multiplier, positive);
  scores.write = [](const Family& model) -> std::optional<Json> { return attention_multiplier(model); };
  HfTable<Family> table = with_rows<Family>(
      dense_table<Family>(),
      {mapped("attention_bias", &Family::attention_bias), mapped("mlp_bias", &Family::ffn_bias),
       mapped("embedding_multiplier", &Family::embedding_multiplier, positive),
       mapped("residual_multiplier", &Family::residual_multiplier, positive), std::move(scores),
       mapped("logits_scaling", &Family::logits_scaling, positive), activation_key<Family>("hidden_act")});
  add_irrelevant(table, {"sliding_window"});
  return table;
}

GraniteConfig granite_defaults() {
  GraniteConfig model;
  model.width = 4096, model.layers = model.heads = 32;
  model.ffn_width = 11008, model.vocab_size = 32000, model.max_seq_len = 2048;
  model.embedding_multiplier = model.residual_multiplier = model.logits_scaling = 1;
  model.attention_multiplier = 1;
  return model;
}

const HfPresets kGranitePresets = {
    {"3.3-2b",
     R"({"hidden_size": 2048, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads":
       8, "intermediate_size": 8192, "vocab_size": 49159, "max_position_embeddings": 131072,
       "rope_theta": 10000000, "rms_norm_eps": 1e-05, "tie_word_embeddings": true,
       "attention_multiplier": 0.015625, "embedding_multiplier": 12, "residual_multiplier": 0.22,
       "logits_scaling": 8})"},
    {"3.3-8b",
     R"({"hidden_size": 4096, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads":
       8, "intermediate_size": 12800, "vocab_size": 49159, "max_position_embeddings": 131072,
       "rope_theta": 10000000, "rms_norm_eps": 1e-05, "tie_word_embeddings": true,
       "attention_multiplier": 0.0078125, "embedding_multiplier": 12, "residual_multiplier": 0.22,
       "logits_scaling": 16})"},
    {"3.0-2b",
     R"({"hidden_size": 2048, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads":
       8, "intermediate_size": 8192, "vocab_size": 49155, "max_position_embeddings": 4096, "rope_theta":
       10000, "rms_norm_eps": 1e-05, "tie_word_embeddings": true, "attention_multiplier": 0.015625,
       "embedding_multiplier": 12, "residual_multiplier": 0.22, "logits_scaling": 8})"},
    {"3.0-8b",
     R"({"hidden_size": 4096, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads":
       8, "intermediate_size": 12800, "vocab_size": 49155, "max_position_embeddings": 4096, "rope_theta":
       10000, "rms_norm_eps": 1e-05, "tie_word_embeddings": true, "attention_multiplier": 0.0078125,
       "embedding_multiplier": 12, "residual_multiplier": 0.22, "logits_scaling": 16})"}};

}  // namespace

DecoderSpec spec_of(const GraniteConfig& c) {
  DecoderSpec s = dense_spec(c);
  s.attention.qkv_bias = s.attention.out_bias = c.attention_bias;
  s.ffn.bias = c.ffn_bias;
  s.attention.softmax_scale = attention_multiplier(c);
  s.embedding.scale = c.embedding_multiplier;
  s.residual.scale = c.residual_multiplier;
  s.logits.scale = 1 / c.logits_scaling;
  return s;
}

const HfFamily<GraniteConfig>& hf_family(const GraniteConfig&) {
  static const HfFamily<GraniteConfig> family = {.model_type = "granite",
                                                 .architectures = {"GraniteForCausalLM", "GraniteModel"},
                                                 .defaults = granite_defaults(),
                                                 .table = granite_table(),
                                                 .canonical = canonical_granite,
                                                 .presets = kGranitePresets};
  return family;
}

}  // namespace tycho
