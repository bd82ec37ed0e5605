// Both layouts of rotary positions, kinds of blocks.
#include "trainer/families/dense_hf.h"

namespace tycho {
namespace {

const char* const kTypes[] = {"full_attention", "sliding_attention"};

/// Returns the member if the document is an object that has it and it is not null; nullptr otherwise.
const Json* given(const Json& document, const char* key) {
  if (!document.is_object()) return nullptr;
  const auto found = document.find(key);
  return found == document.end() || found->is_null() ? nullptr : &*found;
}

/// Returns the object under a key; an empty one if it is missing, null or empty.
Json object_of(const Json& document, const char* key) {
  const Json* found = given(document, key);
  return found == nullptr ? Json::object() : *found;
}

Json named_type(Json rope) {
  if (rope.is_object() && !rope.contains("rope_type"))
    rope["rope_type"] = rope.value("type", Json("default"));
  if (rope.is_object()) rope.erase("type");
  return rope;
}

/// Returns true for a document with one rotation for each kind of block.
bool is_by_type(const Json& rope) {
  return given(rope, kTypes[0]) != nullptr || given(rope, kTypes[1]) != nullptr;
}

}  // namespace

void set_qk_norm(QkNorm form, DecoderSpec& spec) {
  spec.attention.qk_norm = form;
  spec.attention.qk = spec.norm;
  spec.names.q_norm = "self_attn.q_norm", spec.names.k_norm = "self_attn.k_norm";
}

void set_windows(const WindowedConfig& model, DecoderSpec& spec) {
  for (int64_t i = 0; i < model.layers; ++i)
    if (model.layer_type(i) == LayerType::kSliding)
      spec.blocks[static_cast<size_t>(i)].window = model.sliding_window.value_or(-1);
}

void add_local_rotary(const WindowedConfig& model, double theta, DecoderSpec& spec) {
  spec.positions.rotary.push_back({.theta = theta, .dim = model.head_dim()});
  for (int64_t i = 0; i < model.layers; ++i)
    spec.blocks[static_cast<size_t>(i)].rotary = model.layer_type(i) == LayerType::kSliding ? 1 : 0;
}

Json with_rope_parameters(Json document, double default_theta) {
  Json rope = object_of(document, "rope_scaling");
  if (rope.empty()) rope = object_of(document, "rope_parameters");
  if (rope.is_object()) {
    if (given(rope, "rope_theta") == nullptr) {
      const Json* theta = given(document, "rope_theta");
      rope["rope_theta"] = theta == nullptr ? Json(default_theta) : *theta;
    }
    // A top-level original length, as Phi-3 has it, wins; without any it is the model's longest sequence.
    const char* const kOriginal = "original_max_position_embeddings";
    const Json* original = given(document, kOriginal);
    const Json* longest = given(document, "max_position_embeddings");
    if (original != nullptr)
      rope[kOriginal] = *original;
    else if (given(rope, kOriginal) == nullptr && longest != nullptr)
      rope[kOriginal] = *longest;
    rope = named_type(std::move(rope));
  }
  for (const char* key : {"rope_scaling", "rope_theta"}) document.erase(key);
  document["rope_parameters"] = std::move(rope);
  return document;
}

Json with_rope_parameters_by_type(Json document, double default_theta, const char* local_key,
                                  double default_local_theta) {
  const Json* theta = given(document, "rope_theta");
  const Json* local = given(document, local_key);
  Json by_type = object_of(document, "rope_parameters");
  if (!is_by_type(by_type)) by_type = Json::object();
  Json scaling = object_of(document, "rope_scaling");
  Json full = object_of(by_type, kTypes[0]), sliding = object_of(by_type, kTypes[1]);
  if (full.is_object() && scaling.is_object()) full.update(scaling);
  if (full.is_object() && given(full, "rope_theta") == nullptr)
    full["rope_theta"] = theta == nullptr ? Json(default_theta) : *theta;
  if (sliding.is_object() && given(sliding, "rope_theta") == nullptr)
    sliding["rope_theta"] = local == nullptr ? Json(default_local_theta) : *local;
  const char* const kOriginal = "original_max_position_embeddings";
  if (const Json* longest = given(document, "max_position_embeddings"))
    for (Json* rope : {&full, &sliding})
      if (rope->is_object() && given(*rope, kOriginal) == nullptr) (*rope)[kOriginal] = *longest;
  for (const char* key : {"rope_scaling", "rope_theta", local_key}) document.erase(key);
  document["rope_parameters"] =
      Json::object({{kTypes[0], named_type(full)}, {kTypes[1], named_type(sliding)}});
  return document;
}

void read_rope_parameters(const JsonPath& place, const std::vector<std::string>& known, double& theta,
                          RopeScalingConfig& scaling) {
  if (!check_object(place, "a table of keys")) return;
  const auto read = [&](const char* key, const Rule& rule, auto& out) {
    if (const Json* found = given(place.json, key)) read_value(place.child(*found, key), rule, out);
  };
  const Json type = place.json.value("rope_type", Json("default"));
  const int index = read_name(place.child(type, "rope_type"), known);
  if (index < 0) return;
  read("rope_theta", positive, theta);
  const std::string& name = known[static_cast<size_t>(index)];
  if (name == "default") return;
  for (const auto& [known_name, value] : enum_names(RopeScaling{}))
    if (name == known_name) scaling.type = value;
  if (given(place.json, "factor") == nullptr && name != "longrope")
    place.problems.push_back({place.path + ".factor", "is missing"});
  read("factor", at_least(1), scaling.factor);
  if (name == "linear") return;
  read("original_max_position_embeddings", positive, scaling.original_max_seq_len);
  read("low_freq_factor", positive, scaling.low_freq_factor);
  read("high_freq_factor", positive, scaling.high_freq_factor);
  read("beta_fast", positive, scaling.beta_fast);
  read("beta_slow", positive, scaling.beta_slow);
  read("truncate", {}, scaling.truncate);
  read("mscale", {}, scaling.mscale);
  read("mscale_all_dim", {}, scaling.mscale_all_dim);
  read("attention_factor", positive, scaling.attention_factor);
  read("short_factor", positive, scaling.short_factor);
  read("long_factor", positive, scaling.long_factor);
}

Json rope_scaling_json(const RopeScalingConfig& rope) {
  if (rope.type == RopeScaling::kNone) return nullptr;
  return rope_scaling_json("rope_type", rope);
}

void read_layer_types(const JsonPath& place, std::vector<LayerType>& types) {
  if (!place.json.is_array()) return place.wanted("a list");
  std::vector<LayerType> all;
  for (size_t i = 0; i < place.json.size(); ++i) {
    const int index = read_name(place.item(place.json[i], i), {kTypes[0], kTypes[1]});
    if (index < 0) return;
    all.push_back(index == 0 ? LayerType::kFull : LayerType::kSliding);
  }
  types = shortest_pattern(std::move(all));
}

Json layer_types_json(const WindowedConfig& model) {
  Json types = Json::array();
  for (int64_t i = 0; i < model.layers; ++i)
    types.push_back(kTypes[model.layer_type(i) == LayerType::kFull ? 0 : 1]);
  return types;
}

}  // namespace tycho
