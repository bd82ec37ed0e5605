// Converts every family by its own spec_of.
#include "trainer/families/config.h"

namespace tycho {

int64_t ModelConfig::vocab_size() const {
  return std::visit([](const auto& family) { return family.vocab_size; }, value);
}

DecoderSpec decoder_spec(const ModelConfig& config, const AttentionConfig& attention) {
  DecoderSpec spec = std::visit([](const auto& family) { return spec_of(family); }, config.value);
  spec.lora = config.lora;
  spec.fp8 = config.fp8;
  spec.attention.any_order = !attention.deterministic;
  spec.attention.flash_3 = attention.flash == 3;
  return spec;
}

}  // namespace tycho
