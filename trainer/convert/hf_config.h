// Hugging Face's config.json and our model configs, in both directions. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/config_problems.h"
#include "trainer/base/json.h"
#include "trainer/families/config.h"

namespace tycho {

/// What a config.json says.
struct HfConfig {
  ModelConfig model;
  std::vector<std::string> notes;  // what it asks for that changes training only, and that Tycho leaves out
};
/// What the model starts from. First values matter for new weights only: beside others, an initialisation
/// that Tycho does not have is noted and not an error.
enum class HfStart { kItsWeights, kNewWeights };
/// Reads the config.json of a LlamaForCausalLM, MptForCausalLM (transformers' or LLM Foundry's) or
/// GPT2LMHeadModel; absent keys have transformers' defaults. Throws Error (kUnusable) that lists every key
/// that is unknown or asks for what Tycho does not compute, and the rules of the family that do not hold.
HfConfig read_hf_config(const Json& json, const std::string& place, HfStart start = HfStart::kNewWeights);

/// The config.json of a model, without token ids and dtype.
struct HfConfigText {
  Json json;
  std::vector<std::string> warnings;  // what transformers would compute differently
};
/// `seq_len` stands where the model names no longest sequence. `imported`: the config.json that the model
/// came from; of two forms that compute the same it chooses the one to write.
HfConfigText write_hf_config(const ModelConfig& model, int64_t seq_len, const Json& imported = Json());

}  // namespace tycho
