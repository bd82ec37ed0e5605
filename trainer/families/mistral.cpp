// Mistral and Ministral 3 as decoders, and the config.json of MistralForCausalLM and Ministral3ForCausalLM.
#include "trainer/families/mistral.h"

#include "trainer/families/dense_hf.h"

namespace tycho {
namespace {

/// Returns the document with the window that a missing key means.
Json canonical_mistral(Json document) {
  document = with_rope_parameters(std::move(document), 10000);
  if (!document.contains("sliding_window")) document["sliding_window"] = 4096;
  return document;
}

Json canonical_ministral3(Json document) {
  const auto has = [&](const char* key) { return document.contains(key) && !document[key].is_null(); };
  if (!has("rope_parameters") && !has("rope_scaling"))
    document["rope_parameters"] = {{"rope_type", "yarn"},
                                   {"rope_theta", 1e6},
                                   {"factor", 16.0},
                                   {"original_max_position_embeddings", 16384},
                                   {"mscale", 1.0},
                                   {"mscale_all_dim", 1.0},
                                   {"llama_4_scaling_beta", 0.1}};
  document = with_rope_parameters(std::move(document), 10000);
  if (document["rope_parameters"].is_object()) {
    document["llama_4_scaling_beta"] = document["rope_parameters"].value("llama_4_scaling_beta", Json());
    document["rope_parameters"].erase("llama_4_scaling_beta");
  }
  return document;
}

template <class Family>
HfTable<Family> mistral_table() {
  HfTable<Family> table =
      with_rows<Family>(dense_table<Family>(),
                        {window_key<Family>(), activation_key<Family>("hidden_act"),
                         must_be<Family>("attention_bias", {false, nullptr}, "the reference has no biases"),
                         must_be<Family>("mlp_bias", {false, nullptr}, "the reference has no biases")});
  add_irrelevant(table, {"use_sliding_window", "max_window_layers", "layer_types"});
  return table;
}

MistralConfig mistral_defaults() {
  MistralConfig model;
  model.width = 4096, model.layers = model.heads = 32, model.kv_heads = 8;
  model.ffn_width = 14336, model.vocab_size = 32000, model.max_seq_len = 131072;
  return model;
}

Ministral3Config ministral3_defaults() {
  Ministral3Config model;
  model.rope_scaling = {};
  model.width = 4096, model.layers = 34, model.heads = 32, model.kv_heads = 8, model.head_width = 128;
  model.ffn_width = 14336, model.vocab_size = 131072, model.max_seq_len = 262144;
  return model;
}

/// Maps llama_4_scaling_beta, which is written inside the scaling.
HfTable<Ministral3Config> ministral3_table() {
  HfTable<Ministral3Config> table = with_rows<Ministral3Config>(
      mistral_table<Ministral3Config>(),
      {also_read("llama_4_scaling_beta", &Ministral3Config::attn_scale, at_least(0))});
  for (HfKey<Ministral3Config>& key : table)
    if (key.name == "rope_scaling")
      key.write = [](const Ministral3Config& model) -> std::optional<Json> {
        Json json = rope_scaling_json(model.rope_scaling);
        if (json.is_null()) json = {{"rope_type", "default"}};
        json["llama_4_scaling_beta"] = model.attn_scale;
        json["original_max_position_embeddings"] = model.rope_scaling.original_max_seq_len;
        json["rope_theta"] = model.rope_theta;
        return json;
      };
  return table;
}

const HfPresets kMistralPresets = {
    {"7b-v0.1",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads":
       8, "head_dim": 128, "intermediate_size": 14336, "vocab_size": 32000, "max_position_embeddings":
       32768, "rope_theta": 10000, "rms_norm_eps": 1e-05, "sliding_window": 4096})"},
    {"7b-v0.3",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads":
       8, "head_dim": 128, "intermediate_size": 14336, "vocab_size": 32768, "max_position_embeddings":
       32768, "rope_theta": 1000000, "rms_norm_eps": 1e-05, "sliding_window": null})"},
    {"nemo-12b",
     R"({"hidden_size": 5120, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads":
       8, "head_dim": 128, "intermediate_size": 14336, "vocab_size": 131072, "max_position_embeddings":
       131072, "rope_theta": 1000000, "rms_norm_eps": 1e-05, "sliding_window": null})"},
    {"small-24b-2501",
     R"({"hidden_size": 5120, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads":
       8, "head_dim": 128, "intermediate_size": 32768, "vocab_size": 131072, "max_position_embeddings":
       32768, "rope_theta": 100000000, "rms_norm_eps": 1e-05, "sliding_window": null})"},
    {"small-24b-3.1",
     R"({"hidden_size": 5120, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads":
       8, "head_dim": 128, "intermediate_size": 32768, "vocab_size": 131072, "max_position_embeddings":
       131072, "rope_theta": 1000000000, "rms_norm_eps": 1e-05, "sliding_window": null})"}};

const HfPresets kMinistral3Presets = {
    {"3b",
     R"({"hidden_size": 3072, "num_hidden_layers": 26, "num_attention_heads": 32, "num_key_value_heads":
       8, "head_dim": 128, "intermediate_size": 9216, "vocab_size": 131072, "max_position_embeddings":
       262144, "rms_norm_eps": 1e-05, "tie_word_embeddings": true, "rope_parameters": {"rope_type":
       "yarn", "rope_theta": 1000000.0, "factor": 16.0, "original_max_position_embeddings": 16384,
       "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta":
       0.1}})"},
    {"8b",
     R"({"hidden_size": 4096, "num_hidden_layers": 34, "num_attention_heads": 32, "num_key_value_heads":
       8, "head_dim": 128, "intermediate_size": 14336, "vocab_size": 131072, "max_position_embeddings":
       262144, "rms_norm_eps": 1e-05, "rope_parameters": {"rope_type": "yarn", "rope_theta": 1000000.0,
       "factor": 16.0, "original_max_position_embeddings": 16384, "beta_fast": 32, "beta_slow": 1,
       "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}})"},
    {"14b",
     R"({"hidden_size": 5120, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads":
       8, "head_dim": 128, "intermediate_size": 16384, "vocab_size": 131072, "max_position_embeddings":
       262144, "rms_norm_eps": 1e-05, "rope_parameters": {"rope_type": "yarn", "rope_theta":
       1000000000.0, "factor": 16.0, "original_max_position_embeddings": 16384, "beta_fast": 32,
       "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}})"}};

}  // namespace

DecoderSpec spec_of(const MistralConfig& c) {
  DecoderSpec s = dense_spec(c);
  set_windows(c, s);
  return s;
}

DecoderSpec spec_of(const Ministral3Config& c) {
  DecoderSpec s = dense_spec(c);
  set_windows(c, s);
  for (BlockSpec& block : s.blocks) {
    block.attn_scale = c.attn_scale, block.counts_from = 0;
    block.floor_scale = static_cast<double>(c.rope_scaling.original_max_seq_len);
  }
  return s;
}

const HfFamily<MistralConfig>& hf_family(const MistralConfig&) {
  static const HfFamily<MistralConfig> family = {.model_type = "mistral",
                                                 .architectures = {"MistralForCausalLM", "MistralModel"},
                                                 .defaults = mistral_defaults(),
                                                 .table = mistral_table<MistralConfig>(),
                                                 .canonical = canonical_mistral,
                                                 .presets = kMistralPresets};
  return family;
}

const HfFamily<Ministral3Config>& hf_family(const Ministral3Config&) {
  static const HfFamily<Ministral3Config> family = {
      .model_type = "ministral3",
      .architectures = {"Ministral3ForCausalLM", "Ministral3Model"},
      .defaults = ministral3_defaults(),
      .table = ministral3_table(),
      .canonical = canonical_ministral3,
      .presets = kMinistral3Presets};
  return family;
}

}  // namespace tycho
