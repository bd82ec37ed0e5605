// The tables of config.json, one per family, and what they share.
#pragma once
#include <vector>

#include "trainer/base/activation.h"
#include "trainer/base/json.h"
#include "trainer/base/json_reader.h"
#include "trainer/convert/hf_keys.h"
#include "trainer/families/config.h"
#include "trainer/families/gpt2_config.h"
#include "trainer/families/llama_config.h"
#include "trainer/families/mpt_config.h"
#include "trainer/families/rope_config.h"

namespace tycho {

/// What a family is called in config.json, and how its keys are read and written.
template <class Family>
struct HfFamily {
  const char* model_type;
  std::vector<const char*> architectures;  // exports write the first
  Family defaults;                         // transformers': a config.json may leave out what equals them
  HfTable<Family> table;
};
const HfFamily<LlamaConfig>& hf_family(const LlamaConfig&);
const HfFamily<MptConfig>& hf_family(const MptConfig&);
const HfFamily<Gpt2Config>& hf_family(const Gpt2Config&);

/// The key init_config of an MPT alone.
const HfTable<MptConfig>& mpt_init_hf_table();

/// The document with the defaults of its writer where MPT's two writers differ.
Json with_mpt_defaults(Json json);
/// What transformers' own MPT would compute differently; empty when it computes the model exactly.
std::vector<std::string> beyond_transformers_mpt(const MptConfig& model);

/// Keys that any config.json of transformers may have and that change no weights and no logits.
const std::vector<std::string>& universal_hf_keys();

/// Activations by the names of transformers.
void read_hf_activation(const JsonPlace& place, Activation& activation);
std::string hf_activation_name(Activation activation);

/// What a stretch of another type than none says, its type under `type_key`.
Json rope_stretch_json(const char* type_key, const RopeScalingConfig& rope);

/// The keys of rope_scaling and of transformers 5's rope_parameters.
template <class Family>
HfTable<Family> rope_keys() {
  const auto read_type = [](const JsonPlace& place, Family& model) {
    static const std::vector<std::string> names = {"default", "linear", "dynamic", "llama3"};
    const int index = read_name(place, names);
    if (index >= 0) model.rope_scaling.type = static_cast<RopeStretch>(index);
  };
  const auto part = [](const char* name, auto member) -> HfKey<Family> {
    const auto read = [=](const JsonPlace& place, Family& model) {
      read_value(place, positive, model.rope_scaling.*member);
    };
    return {name, read, {}};
  };
  HfTable<Family> table = {
      {"rope_type", read_type, {}},
      {"type", read_type, {}},
      also_read("rope_theta", &Family::rope_theta, positive),
      part("factor", &RopeScalingConfig::factor),
      part("low_freq_factor", &RopeScalingConfig::low_freq_factor),
      part("high_freq_factor", &RopeScalingConfig::high_freq_factor),
      part("original_max_position_embeddings", &RopeScalingConfig::original_max_seq_len)};
  table.push_back(must_be<Family>("partial_rotary_factor", {1, nullptr}, "heads are rotated completely"));
  return table;
}

}  // namespace tycho
