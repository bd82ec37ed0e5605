// SmolLM3 as a decoder, and the config.json of SmolLM3ForCausalLM.
#include "trainer/families/smollm.h"

#include "trainer/families/dense_hf.h"

namespace tycho {
namespace {

/// Returns the document with no_rope_layers and layer_types of every layer: where no types are given, blocks
/// without positions slide if use_sliding_window says so.
Json canonical_smollm3(Json document) {
  document = with_rope_parameters(std::move(document), 2000000);
  const Json layers = document.value("num_hidden_layers", Json(36)),
             interval = document.value("no_rope_layer_interval", Json(4));
  const int64_t every = interval.is_number_integer() && interval > 0 ? interval.get<int64_t>() : 4;
  if (document.value("no_rope_layers", Json()).is_null() && layers.is_number_integer() && layers <= 16384) {
    Json rotates = Json::array();
    for (int64_t i = 0; i < layers.get<int64_t>(); ++i) rotates.push_back((i + 1) % every != 0 ? 1 : 0);
    document["no_rope_layers"] = std::move(rotates);
  }
  const bool uses = document.value("use_sliding_window", Json(false)) == true;
  const Json window = document.value("sliding_window", Json()), rotates = document["no_rope_layers"];
  document = with_layer_types(std::move(document), 36, [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    return uses && !window.is_null() && rotates.is_array() && at < rotates.size() && rotates[at] == 0;
  });
  return document;
}

void read_rope_layers(const JsonPath& place, Smollm3Config& model) {
  if (!place.json.is_array()) return place.wanted("a list of 0 and 1");
  if (std::ssize(place.json) < model.layers)
    return place.wanted(fmt::format("a number for each of the {} blocks", model.layers));
  model.rope_layers.clear();
  for (int64_t i = 0; i < model.layers; ++i) {
    const Json& one = place.json[static_cast<size_t>(i)];
    model.rope_layers.push_back(one != 0 && one != false ? 1 : 0);
  }
  model.rope_layers = shortest_pattern(model.rope_layers);
}

HfTable<Smollm3Config> smollm3_table() {
  using Family = Smollm3Config;
  HfTable<Family> table = with_rows<Family>(
      dense_table<Family>(),
      {window_key<Family>(),
       layer_types_key<Family>(),
       {"use_sliding_window",
        {},
        [](const Family& model) -> std::optional<Json> { return model.sliding_window.has_value(); }},
       {"no_rope_layers", read_rope_layers,
        [](const Family& model) -> std::optional<Json> {
          Json rotates = Json::array();
          for (int64_t i = 0; i < model.layers; ++i) rotates.push_back(model.has_rope(i) ? 1 : 0);
          return rotates;
        }},
       mapped("attention_bias", &Family::attention_bias),
       mapped("mlp_bias", &Family::ffn_bias),
       activation_key<Family>("hidden_act")});
  add_irrelevant(table, {"no_rope_layer_interval", "max_window_layers", "pretraining_tp"});
  return table;
}

Smollm3Config smollm3_defaults() {
  Smollm3Config model;
  model.width = 2048, model.layers = 36, model.heads = 16, model.kv_heads = 4;
  model.ffn_width = 11008, model.vocab_size = 128256, model.max_seq_len = 32768;
  return model;
}

const HfPresets kSmollm3Presets = {
    {"3b",
     R"({"hidden_size": 2048, "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads":
       4, "intermediate_size": 11008, "vocab_size": 128256, "max_position_embeddings": 65536,
       "rope_theta": 5000000})"}};

}  // namespace

DecoderSpec spec_of(const Smollm3Config& c) {
  DecoderSpec s = dense_spec(c);
  s.attention.qkv_bias = s.attention.out_bias = c.attention_bias;
  s.ffn.bias = c.ffn_bias;
  set_windows(c, s);
  for (int64_t i = 0; i < c.layers; ++i) s.blocks[static_cast<size_t>(i)].positions = c.has_rope(i);
  return s;
}

const HfFamily<Smollm3Config>& hf_family(const Smollm3Config&) {
  static const HfFamily<Smollm3Config> family = {.model_type = "smollm3",
                                                 .architectures = {"SmolLM3ForCausalLM", "SmolLM3Model"},
                                                 .defaults = smollm3_defaults(),
                                                 .table = smollm3_table(),
                                                 .canonical = canonical_smollm3,
                                                 .presets = kSmollm3Presets};
  return family;
}

}  // namespace tycho
