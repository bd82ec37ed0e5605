// Models of text and images: the part of text is a model of its own, and is all that is read.
#pragma once
#include <string>

#include "trainer/base/json.h"

namespace tycho {

/// Key of the result of text_config_of that names the model's own model_type.
inline constexpr char kTextOf[] = "text_of";

/// Returns the config.json of the text model of Gemma 3 and Mistral 3 (model_type "gemma3", "mistral3"); any
/// other document unchanged. The whole model's tie_word_embeddings decides, true by default. `has_head`: the
/// weights have a head of their own, and then it is not tied.
Json text_config_of(const Json& config, bool has_head = false);

/// Returns the name of a text model's tensor without what such models put in front of it: language_model.
std::string text_tensor_name(const std::string& name);
/// Returns true for tensors of the part that looks at images.
bool is_vision_tensor(const std::string& name);

}  // namespace tycho
