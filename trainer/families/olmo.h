// OLMo configurations.
#pragma once
#include "trainer/families/dense_config.h"

namespace tycho {

struct DecoderSpec;
template <class Family>
struct HfFamily;

/// OLMo 2 (OLMo Team 2024, arXiv:2501.00656): norms after each branch alone, and of all heads' queries and
/// keys together.
struct Olmo2Config : WindowedConfig {
  static constexpr const char* kKind = "olmo2";
  static constexpr const char* kHelp =
      "OLMo 2: Llama with norms after each branch, and of all heads' queries and keys together.";
  bool attention_bias = false;
  Olmo2Config() { rope_theta = 500000; }

  template <class Visitor>
  void fields(Visitor& v) {
    WindowedConfig::fields(v);
    v("attention_bias", attention_bias, "Biases in the attention projections.");
  }
};

/// OLMo 3: OLMo 2 with windows in three of four blocks; only blocks without a window scale their rotations.
struct Olmo3Config : Olmo2Config {
  static constexpr const char* kKind = "olmo3";
  static constexpr const char* kHelp =
      "OLMo 3: OLMo 2 with windows in three of four blocks; rope_scaling is that of the fourth.";
  double rope_local_theta = 500000;
  Olmo3Config() {
    sliding_window = 4095;
    layer_types = {LayerType::kSliding, LayerType::kSliding, LayerType::kSliding, LayerType::kFull};
  }

  template <class Visitor>
  void fields(Visitor& v) {
    Olmo2Config::fields(v);
    v("rope_local_theta", rope_local_theta, "Base of the rotary frequencies of sliding blocks.", positive);
  }
};

/// Return the model in the terms of the one decoder.
DecoderSpec spec_of(const Olmo2Config& model);
DecoderSpec spec_of(const Olmo3Config& model);
/// Return the family's name in config.json, and how its keys are read and written there.
const HfFamily<Olmo2Config>& hf_family(const Olmo2Config&);
const HfFamily<Olmo3Config>& hf_family(const Olmo3Config&);

}  // namespace tycho
