// SmolLM3's configuration. SmolLM2 is a Llama.
#pragma once
#include "trainer/families/dense_config.h"

namespace tycho {

struct DecoderSpec;
template <class Family>
struct HfFamily;

/// SmolLM3: Llama in which every fourth block has no positions (Yang et al. 2025, arXiv:2501.18795).
struct Smollm3Config : WindowedConfig {
  static constexpr const char* kKind = "smollm3";
  static constexpr const char* kHelp = "SmolLM3: Llama in which every fourth block has no positions.";
  bool attention_bias = false, ffn_bias = false;
  std::vector<int64_t> rope_layers = {1, 1, 1, 0};
  Smollm3Config() { rope_theta = 2000000, tied = true; }

  template <class Visitor>
  void fields(Visitor& v) {
    WindowedConfig::fields(v);
    v("attention_bias", attention_bias, "Biases in the attention projections.");
    v("ffn_bias", ffn_bias, "Biases in the feed-forward layer.");
    v("rope_layers", rope_layers,
      "1 for blocks that rotate queries and keys, 0 for others, first to last, repeated until every block "
      "has "
      "one (Hugging Face's no_rope_layers).",
      in_range(0, 1));
  }
  bool has_rope(int64_t block) const {
    return rope_layers.empty() || rope_layers[static_cast<size_t>(block) % rope_layers.size()] != 0;
  }
};

/// Returns the model in the terms of the one decoder.
DecoderSpec spec_of(const Smollm3Config& model);
/// Returns the family's name in config.json, and how its keys are read and written there.
const HfFamily<Smollm3Config>& hf_family(const Smollm3Config&);

}  // namespace tycho
