// Configuration of models: one struct per family.
#pragma once
#include <cstdint>
#include <variant>

#include "trainer/base/fields.h"
#include "trainer/families/gpt2.h"
#include "trainer/families/llama.h"
#include "trainer/families/lora_config.h"
#include "trainer/families/mpt.h"

namespace tycho {

struct ModelConfig : OneOf<LlamaConfig, MptConfig, Gpt2Config> {
  static constexpr const char* kNamespace = "model";
  LoraConfig lora = {};  // for any family; a separate key of the recipe
  int64_t vocab_size() const {
    return std::visit([](const auto& family) { return family.vocab_size; }, value);
  }
};

}  // namespace tycho
