// What a model can be told: one config per family.
#pragma once
#include "trainer/models/gpt2_config.h"
#include "trainer/models/llama_config.h"
#include "trainer/models/mpt_config.h"

namespace tycho {

struct ModelConfig : OneOf<LlamaConfig, MptConfig, Gpt2Config> {
  static constexpr const char* kNamespace = "model";
};

}  // namespace tycho
