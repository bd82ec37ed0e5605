// Reads text_config as transformers 5.23 does: it is a config.json with the defaults of its own class.
#include "trainer/huggingface/text_config.h"

namespace tycho {
namespace {

/// Returns the model_type of the text; "" for models that are not of text and images.
std::string text_type(const Json& config) {
  const Json type = config.value("model_type", Json());
  if (type == "gemma3") return "gemma3_text";
  if (type != "mistral3") return "";
  const Json text = config.value("text_config", Json());
  return text.is_object() && text.contains("model_type") && text["model_type"].is_string()
             ? text["model_type"].get<std::string>()
             : "mistral";
}

}  // namespace

Json text_config_of(const Json& config, bool has_head) {
  if (!config.is_object()) return config;
  const std::string type = text_type(config);
  const auto found = config.find("text_config");
  if (type.empty() || found == config.end() || !found->is_object()) return config;
  Json text = *found;
  text["model_type"] = type;
  text["tie_word_embeddings"] = has_head ? Json(false) : config.value("tie_word_embeddings", Json(true));
  text[kTextOf] = config["model_type"];
  text.erase("architectures");
  if (const auto quantised = config.find("quantization_config"); quantised != config.end())
    text["quantization_config"] = *quantised;
  return text;
}

std::string text_tensor_name(const std::string& name) {
  for (const std::string prefix : {"language_model.", "model.language_model."})
    if (name.starts_with(prefix)) {
      const std::string rest = name.substr(prefix.size());
      const bool whole = rest.starts_with("model.") || rest.starts_with("lm_head.");
      return whole ? rest : "model." + rest;
    }
  return name;
}

bool is_vision_tensor(const std::string& name) {
  for (const std::string prefix : {"vision_tower.", "multi_modal_projector."})
    if (name.starts_with(prefix) || name.starts_with("model." + prefix)) return true;
  return false;
}

}  // namespace tycho
