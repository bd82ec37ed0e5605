// The tables of config.json, one per family, and what they share.
#pragma once
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "trainer/base/fields.h"
#include "trainer/base/json.h"
#include "trainer/base/json_reader.h"
#include "trainer/families/feed_forward_activation.h"
#include "trainer/families/hf_keys.h"
#include "trainer/families/rope_config.h"

namespace tycho {

/// Names of published sizes, with the config.json of each as far as it differs from the family's defaults.
using HfPresets = std::vector<std::pair<const char*, const char*>>;

/// A family's name in config.json, and how its keys are read and written.
template <class Family>
struct HfFamily {
  const char* model_type;
  std::vector<const char*> architectures;  // exports write the first
  Family defaults;  // transformers'; a config.json may leave out keys with these values
  HfTable<Family> table;
  /// Writes the keys that stand in the document in one of several ways in one way, which `table` reads.
  Json (*canonical)(Json document) = [](Json document) { return document; };
  HfPresets presets = {};
};

/// Calls visit(HfFamily) for every family.
template <class Visit, class... Families>
void for_each_family(const OneOf<Families...>&, const Visit& visit) {
  (visit(hf_family(Families{})), ...);
}

/// Returns the keys that any config.json of transformers may have and that change no weights and no logits.
const std::vector<std::string>& universal_hf_keys();

/// Writes whole numbers as integers, because transformers takes some numbers only as integers.
Json whole_if_possible(double x);

/// Read and write activations by their names in transformers, which has two names for gelu_tanh. Throws Error
/// (kRecipe) for one without a name.
void read_hf_activation(const JsonPath& place, FeedForwardActivation& activation);
std::string hf_activation_name(const FeedForwardActivation& activation,
                               const char* gelu_tanh = "gelu_pytorch_tanh");

/// Maps the activation of a gate.
template <class Family>
HfKey<Family> activation_key(const char* name) {
  return {name, [](const JsonPath& place, Family& model) { read_hf_activation(place, model.activation); },
          [](const Family& model) -> std::optional<Json> { return hf_activation_name(model.activation); }};
}

/// Returns the fields of a scaling that is not none, with its type under `type_key`.
Json rope_scaling_json(const char* type_key, const RopeScalingConfig& rope);

/// Returns the keys of rope_scaling and of transformers 5's rope_parameters.
template <class Family>
HfTable<Family> rope_keys() {
  const auto read_type = [](const JsonPath& place, Family& model) {
    static const std::vector<std::string> names = {"default", "linear", "dynamic",
                                                   "llama3",  "yarn",   "longrope"};
    const int index = read_name(place, names);
    if (index < 0) return;
    model.rope_scaling.type = static_cast<RopeScaling>(index);
    if (model.rope_scaling.type == RopeScaling::kLongrope)
      model.rope_scaling.factor = 1;  // until a length is read
  };
  const auto part = [](const char* name, auto member, const Rule& rule = positive) -> HfKey<Family> {
    const auto read = [=](const JsonPath& place, Family& model) {
      read_value(place, rule, model.rope_scaling.*member);
    };
    return {name, read, {}};
  };
  // A longrope without a factor is stretched from there to the longest sequence.
  const auto read_original = [](const JsonPath& place, Family& model) {
    RopeScalingConfig& rope = model.rope_scaling;
    read_value(place, positive, rope.original_max_seq_len);
    if (rope.type == RopeScaling::kLongrope)
      rope.factor = std::max(1.0, static_cast<double>(std::optional<int64_t>(model.max_seq_len).value_or(1)) /
                                      static_cast<double>(rope.original_max_seq_len));
  };
  HfTable<Family> table = {{"rope_type", read_type, {}},
                           {"type", read_type, {}},
                           also_read("rope_theta", &Family::rope_theta, positive),
                           {"original_max_position_embeddings", read_original, {}},
                           part("factor", &RopeScalingConfig::factor),
                           part("low_freq_factor", &RopeScalingConfig::low_freq_factor),
                           part("high_freq_factor", &RopeScalingConfig::high_freq_factor),
                           part("beta_fast", &RopeScalingConfig::beta_fast),
                           part("beta_slow", &RopeScalingConfig::beta_slow),
                           part("truncate", &RopeScalingConfig::truncate, {}),
                           part("mscale", &RopeScalingConfig::mscale),
                           part("mscale_all_dim", &RopeScalingConfig::mscale_all_dim),
                           part("attention_factor", &RopeScalingConfig::attention_factor),
                           part("short_factor", &RopeScalingConfig::short_factor),
                           part("long_factor", &RopeScalingConfig::long_factor)};
  table.push_back(must_be<Family>("partial_rotary_factor", {1, nullptr}, "heads are rotated completely"));
  return table;
}

}  // namespace tycho
