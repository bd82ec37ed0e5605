// Qwen configurations.
#pragma once
#include "trainer/families/dense_config.h"

namespace tycho {

struct DecoderSpec;
template <class Family>
struct HfFamily;

/// Qwen2 and Qwen2.5 (Yang et al. 2024, arXiv:2407.10671, arXiv:2412.15115): Llama with biases of queries,
/// keys and values.
struct Qwen2Config : WindowedConfig {
  static constexpr const char* kKind = "qwen2";
  static constexpr const char* kHelp = "Qwen2 and Qwen2.5: Llama with biases of queries, keys and values.";
  Qwen2Config() { rope_theta = 1000000; }
};

/// Qwen3, dense (Yang et al. 2025, arXiv:2505.09388): Llama with RMSNorm of each head's queries and keys.
struct Qwen3Config : WindowedConfig {
  static constexpr const char* kKind = "qwen3";
  static constexpr const char* kHelp = "Qwen3: Llama with RMSNorm of each head's queries and keys.";
  bool attention_bias = false;
  Qwen3Config() { rope_theta = 1000000; }

  template <class Visitor>
  void fields(Visitor& v) {
    WindowedConfig::fields(v);
    v("attention_bias", attention_bias, "Biases in the attention projections.");
  }
};

/// Return the model in the terms of the one decoder.
DecoderSpec spec_of(const Qwen2Config& model);
DecoderSpec spec_of(const Qwen3Config& model);
/// Return the family's name in config.json, and how its keys are read and written there.
const HfFamily<Qwen2Config>& hf_family(const Qwen2Config&);
const HfFamily<Qwen3Config>& hf_family(const Qwen3Config&);

}  // namespace tycho
