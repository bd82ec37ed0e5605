// Configuration of models: one struct per family.
#pragma once
#include <cstdint>
#include <variant>

#include "trainer/base/fields.h"
#include "trainer/families/attention_config.h"
#include "trainer/families/decoder_spec.h"
#include "trainer/families/fp8_config.h"
#include "trainer/families/gemma.h"
#include "trainer/families/gpt2.h"
#include "trainer/families/granite.h"
#include "trainer/families/llama.h"
#include "trainer/families/lora_config.h"
#include "trainer/families/mistral.h"
#include "trainer/families/mpt.h"
#include "trainer/families/olmo.h"
#include "trainer/families/phi.h"
#include "trainer/families/qwen.h"
#include "trainer/families/smollm.h"

namespace tycho {

struct ModelConfig
    : OneOf<LlamaConfig, MptConfig, Gpt2Config, Qwen2Config, Qwen3Config, MistralConfig, Ministral3Config,
            Gemma2Config, Gemma3Config, Olmo2Config, Olmo3Config, Smollm3Config, Phi3Config, GraniteConfig> {
  static constexpr const char* kNamespace = "model";
  LoraConfig lora = {};  // for any family; a separate key of the recipe, as is fp8
  Fp8Config fp8 = {};
  int64_t vocab_size() const;
};

/// Converts a model of any family to the decoder's terms.
DecoderSpec decoder_spec(const ModelConfig& config, const AttentionConfig& attention = {});

}  // namespace tycho
