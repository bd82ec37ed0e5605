// OLMo 2 and 3 as decoders, and the config.json of Olmo2ForCausalLM and Olmo3ForCausalLM.
#include "trainer/families/olmo.h"

#include "trainer/families/dense_hf.h"

namespace tycho {
namespace {

constexpr double kTheta3 = 500000;  // which OLMo 3's sliding blocks have in files without rope_parameters

Json canonical_olmo2(Json document) { return with_rope_parameters(std::move(document), 10000); }

Json canonical_olmo3(Json document) {
  document = with_rope_parameters_by_type(std::move(document), kTheta3, "", kTheta3);
  return with_layer_types(std::move(document), 32, [](int64_t i) { return (i + 1) % 4 != 0; });
}

template <class Family>
HfTable<Family> olmo_table(HfTable<Family> table) {
  table = with_rows<Family>(std::move(table), {mapped<Family>("attention_bias", &Family::attention_bias),
                                               activation_key<Family>("hidden_act")});
  add_irrelevant(table, {"clip_qkv"});
  return table;
}

template <class Family>
Family olmo_defaults() {
  Family model;
  model.width = 4096, model.layers = model.heads = 32;
  model.ffn_width = 11008, model.vocab_size = 50304, model.max_seq_len = 2048, model.norm_eps = 1e-5;
  return model;
}

/// Returns rope_parameters, for which the old layout has no place where sliding blocks have another base.
std::optional<Json> rope_of_both_kinds(const Olmo3Config& model) {
  if (model.rope_local_theta == kTheta3) return std::nullopt;
  Json full = rope_scaling_json(model.rope_scaling);
  if (full.is_null()) full = {{"rope_type", "default"}};
  full["rope_theta"] = model.rope_theta;
  return Json{{"full_attention", full},
              {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", model.rope_local_theta}}}};
}

HfTable<Olmo3Config> olmo3_table() {
  HfTable<Olmo3Config> table = dense_table<Olmo3Config>();
  for (HfKey<Olmo3Config>& key : table)
    if (key.name == "rope_parameters")
      key = {"rope_parameters", rope_by_type<Olmo3Config>().read, rope_of_both_kinds};
    else if (key.name == "rope_theta" || key.name == "rope_scaling")
      key.write = [old = key.write](const Olmo3Config& model) {
        return model.rope_local_theta == kTheta3 ? old(model) : std::nullopt;
      };
  table = with_rows<Olmo3Config>(olmo_table(std::move(table)),
                                 {window_key<Olmo3Config>(kIdleWindow), layer_types_key<Olmo3Config>()});
  return table;
}

const HfPresets kOlmo2Presets = {
    {"1b",
     R"({"hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads":
       16, "intermediate_size": 8192, "vocab_size": 100352, "max_position_embeddings": 4096,
       "rope_theta": 500000, "rms_norm_eps": 1e-06})"},
    {"7b",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads":
       32, "intermediate_size": 11008, "vocab_size": 100352, "max_position_embeddings": 4096,
       "rope_theta": 500000, "rms_norm_eps": 1e-06})"},
    {"13b",
     R"({"hidden_size": 5120, "num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads":
       40, "intermediate_size": 13824, "vocab_size": 100352, "max_position_embeddings": 4096,
       "rope_theta": 500000, "rms_norm_eps": 1e-06})"},
    {"32b",
     R"({"hidden_size": 5120, "num_hidden_layers": 64, "num_attention_heads": 40, "num_key_value_heads":
       8, "intermediate_size": 27648, "vocab_size": 100352, "max_position_embeddings": 4096,
       "rope_theta": 500000, "rms_norm_eps": 1e-06})"}};

const HfPresets kOlmo3Presets = {
    {"7b",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads":
       32, "intermediate_size": 11008, "vocab_size": 100278, "max_position_embeddings": 65536,
       "rope_theta": 500000, "rms_norm_eps": 1e-06, "sliding_window": 4096, "rope_scaling": {"rope_type":
       "yarn", "factor": 8.0, "original_max_position_embeddings": 8192, "attention_factor":
       1.2079441541679836, "beta_fast": 32, "beta_slow": 1}})"},
    {"32b",
     R"({"hidden_size": 5120, "num_hidden_layers": 64, "num_attention_heads": 40, "num_key_value_heads":
       8, "intermediate_size": 27648, "vocab_size": 100278, "max_position_embeddings": 65536,
       "rope_theta": 500000, "rms_norm_eps": 1e-06, "sliding_window": 4096, "rope_scaling": {"rope_type":
       "yarn", "factor": 8.0, "original_max_position_embeddings": 8192, "attention_factor":
       1.2079441541679836, "beta_fast": 32, "beta_slow": 1}})"}};

}  // namespace

DecoderSpec spec_of(const Olmo2Config& c) {
  DecoderSpec s = dense_spec(c);
  s.norm_position = NormPosition::kAfter;
  s.names.norm1 = s.names.norm2 = "";
  s.names.norm1_after = "post_attention_layernorm", s.names.norm2_after = "post_feedforward_layernorm";
  s.attention.qkv_bias = s.attention.out_bias = c.attention_bias;
  set_qk_norm(QkNorm::kTogether, s);
  set_windows(c, s);
  return s;
}

DecoderSpec spec_of(const Olmo3Config& c) {
  DecoderSpec s = spec_of(static_cast<const Olmo2Config&>(c));
  add_local_rotary(c, c.rope_local_theta, s);
  return s;
}

const HfFamily<Olmo2Config>& hf_family(const Olmo2Config&) {
  static const HfFamily<Olmo2Config> family = {.model_type = "olmo2",
                                               .architectures = {"Olmo2ForCausalLM", "Olmo2Model"},
                                               .defaults = olmo_defaults<Olmo2Config>(),
                                               .table = olmo_table(dense_table<Olmo2Config>()),
                                               .canonical = canonical_olmo2,
                                               .presets = kOlmo2Presets};
  return family;
}

const HfFamily<Olmo3Config>& hf_family(const Olmo3Config&) {
  static const HfFamily<Olmo3Config> family = {.model_type = "olmo3",
                                               .architectures = {"Olmo3ForCausalLM", "Olmo3Model"},
                                               .defaults = olmo_defaults<Olmo3Config>(),
                                               .table = olmo3_table(),
                                               .canonical = canonical_olmo3,
                                               .presets = kOlmo3Presets};
  return family;
}

}  // namespace tycho
