// The config.json of today's dense families: common keys, both layouts of rotary positions, kinds of blocks.
#pragma once
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/base/json_reader.h"
#include "trainer/families/decoder_spec.h"
#include "trainer/families/dense_config.h"
#include "trainer/families/hf_family.h"
#include "trainer/families/hf_keys.h"
#include "trainer/families/rope_config.h"

namespace tycho {

/// Returns Llama's shape with the family's sizes, rotations and names: RMSNorm before each branch, a gated
/// SiLU feed-forward, no biases.
template <class Family>
DecoderSpec dense_spec(const Family& c) {
  DecoderSpec s = sized_spec(c, c.ffn_width);
  s.positions.rotary = {{.theta = c.rope_theta, .dim = c.head_dim(), .scaling = c.rope_scaling}};
  s.init = normal_init(c.init_std, c.layers);
  return s;
}
/// Adds norms of queries and keys, of the kind that the blocks have.
void set_qk_norm(QkNorm form, DecoderSpec& spec);
/// Gives the blocks their windows.
void set_windows(const WindowedConfig& model, DecoderSpec& spec);

/// Returns the document with rotary positions in one layout, whatever its layout: key "rope_parameters",
/// with rope_theta (`default_theta` where it is missing) and rope_type, as transformers 5.23 understands it
/// (convert_rope_params_to_dict, standardize_rope_params): rope_scaling wins over rope_parameters as a whole.
Json with_rope_parameters(Json document, double default_theta);
/// Returns the document with rope_parameters for full_attention and sliding_attention, as transformers 5.23
/// understands those of Gemma 3 and OLMo 3. local_theta: key of the base of sliding blocks; "" for none.
Json with_rope_parameters_by_type(Json document, double default_theta, const char* local_key,
                                  double default_local_theta);
/// Returns the document with layer_types of every layer: its own, or by `slides(layer)`.
template <class Slides>
Json with_layer_types(Json document, int64_t default_layers, const Slides& slides) {
  if (document.contains("layer_types") && !document["layer_types"].is_null()) return document;
  const Json count = document.value("num_hidden_layers", Json(default_layers));
  if (!count.is_number_integer() || count < 0 || count > 16384) return document;
  Json types = Json::array();
  for (int64_t i = 0; i < count.get<int64_t>(); ++i)
    types.push_back(slides(i) ? "sliding_attention" : "full_attention");
  document["layer_types"] = std::move(types);
  return document;
}

/// Returns the keys of a rotation inside rope_parameters that are read into rope_theta and rope_scaling.
/// `known`: the types that the family has.
void read_rope_parameters(const JsonPath& place, const std::vector<std::string>& known, double& theta,
                          RopeScalingConfig& scaling);
/// Returns rope_scaling as config.json has it; null for none.
Json rope_scaling_json(const RopeScalingConfig& rope);

/// Returns the shortest beginning of a list that gives the whole list when it is repeated.
template <class T>
std::vector<T> shortest_pattern(std::vector<T> all) {
  size_t period = 1;
  const auto repeats = [&] {
    for (size_t i = period; i < all.size(); ++i)
      if (all[i] != all[i - period]) return false;
    return true;
  };
  while (period < all.size() && !repeats()) ++period;
  all.resize(std::min(period, all.size()));
  return all;
}

/// Gives sliding blocks rotations of their own, which are not scaled.
void add_local_rotary(const WindowedConfig& model, double theta, DecoderSpec& spec);

/// Maps rope_parameters of two kinds of blocks.
template <class Family>
HfKey<Family> rope_by_type() {
  const auto read = [](const JsonPath& place, Family& model) {
    const Json &full = place.json.at("full_attention"), &sliding = place.json.at("sliding_attention");
    read_rope_parameters(place.child(full, "full_attention"), {"default", "linear", "llama3", "yarn"},
                         model.rope_theta, model.rope_scaling);
    model.rope_scaling.truncate = true;  // transformers looks for it outside of the kinds of blocks
    RopeScalingConfig none;
    read_rope_parameters(place.child(sliding, "sliding_attention"), {"default"}, model.rope_local_theta,
                         none);
  };
  return {"rope_parameters", read, {}};
}

/// Reads the names of layer_types; a pattern that is repeated is kept once.
void read_layer_types(const JsonPath& place, std::vector<LayerType>& types);
/// Returns layer_types of every layer.
Json layer_types_json(const WindowedConfig& model);

/// Maps a window, which counts the query's own key in Hugging Face's files; null: none. `without` is written
/// for models without a window.
template <class Family>
HfKey<Family> window_key(Json without = nullptr) {
  const auto read = [](const JsonPath& place, Family& model) {
    model.sliding_window.reset();
    if (place.json.is_null()) return;
    int64_t window = 1;
    read_value(place, at_least(1), window);
    model.sliding_window = window - 1;
  };
  return {"sliding_window", read, [=](const Family& model) -> std::optional<Json> {
            return model.sliding_window ? Json(*model.sliding_window + 1) : without;
          }};
}

template <class Family>
HfKey<Family> layer_types_key() {
  return {"layer_types",
          [](const JsonPath& place, Family& model) { read_layer_types(place, model.layer_types); },
          [](const Family& model) -> std::optional<Json> { return layer_types_json(model); }};
}

/// Returns the keys that every dense family has. rope_types: the rotations that the family has.
template <class Family>
HfTable<Family> dense_table(std::vector<std::string> rope_types = {"default", "linear", "llama3", "yarn"}) {
  const auto width = [](const Family& model) -> std::optional<Json> { return model.head_dim(); };
  HfTable<Family> table = {
      mapped<Family>("hidden_size", &Family::width, positive),
      mapped<Family>("num_hidden_layers", &Family::layers, positive),
      mapped<Family>("num_attention_heads", &Family::heads, positive),
      mapped<Family>("num_key_value_heads", &Family::kv_heads, positive),
      mapped<Family>("head_dim", &Family::head_width, positive),
      mapped<Family>("intermediate_size", &Family::ffn_width, positive),
      mapped<Family>("vocab_size", &Family::vocab_size, positive),
      mapped<Family>("max_position_embeddings", &Family::max_seq_len, positive),
      mapped<Family>("rms_norm_eps", &Family::norm_eps, positive),
      mapped<Family>("tie_word_embeddings", &Family::tied),
      mapped<Family>("attention_dropout", &Family::attn_dropout, below(0, 1)),
      mapped<Family>("initializer_range", &Family::init_std),
      {"rope_parameters",
       [=](const JsonPath& place, Family& model) {
         read_rope_parameters(place, rope_types, model.rope_theta, model.rope_scaling);
       },
       {}},
      {"rope_theta", {}, [](const Family& model) -> std::optional<Json> { return model.rope_theta; }},
      {"rope_scaling", {}, [](const Family& model) -> std::optional<Json> {
         return rope_scaling_json(model.rope_scaling);
       }}};
  table[3].write = [](const Family& model) -> std::optional<Json> { return model.num_kv_heads(); };
  table[4].write = width;
  return table;
}

/// Window that the classes of Gemma and OLMo 3 require even where no block uses it.
inline constexpr int64_t kIdleWindow = 4096;

/// Adds rows to a table.
template <class Family>
HfTable<Family> with_rows(HfTable<Family> table, std::vector<HfKey<Family>> rows) {
  for (HfKey<Family>& row : rows) table.push_back(std::move(row));
  return table;
}

}  // namespace tycho
