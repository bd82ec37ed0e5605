// Hugging Face's config.json and our model configs, in both directions. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/config_problems.h"
#include "trainer/base/json.h"
#include "trainer/families/config.h"

namespace tycho {

/// The contents of a config.json.
struct HfConfig {
  ModelConfig model;
  std::vector<std::string> notes;  // settings that affect only training, which Tycho ignores
};
/// The weights that the model starts from. Initialisation matters only for new weights: with others, an
/// initialisation that Tycho does not have is a note and not an error.
enum class HfStart { kItsWeights, kNewWeights };
/// Reads the config.json of a LlamaForCausalLM, MptForCausalLM (transformers' or LLM Foundry's) or
/// GPT2LMHeadModel; absent keys have transformers' defaults. Throws Error (kUnusable) that lists every key
/// that is unknown or asks for what Tycho does not compute, and the family's rules that do not hold.
/// `ignore`: keys of the document that are not read; Tycho must not know them.
HfConfig read_hf_config(const Json& json, const std::string& place, HfStart start = HfStart::kNewWeights,
                        const std::vector<std::string>& ignore = {});

/// The config.json of a model, without token ids and dtype.
struct HfConfigText {
  Json json;
  std::vector<std::string> warnings;  // what transformers would compute differently
};
/// `seq_len` is written when the model has no longest sequence. `imported` is the config.json that the model
/// came from; it decides between two forms that compute the same.
HfConfigText write_hf_config(const ModelConfig& model, int64_t seq_len, const Json& imported = Json());

}  // namespace tycho
