// Mistral configurations.
#pragma once
#include "trainer/families/dense_config.h"
#include "trainer/families/rope_config.h"

namespace tycho {

struct DecoderSpec;
template <class Family>
struct HfFamily;

/// Mistral 7B (Jiang et al. 2023, arXiv:2310.06825), Nemo and Small: Llama whose blocks may attend to a
/// window.
struct MistralConfig : WindowedConfig {
  static constexpr const char* kKind = "mistral";
  static constexpr const char* kHelp =
      "Mistral 7B, Nemo and Small: Llama whose blocks may attend to a window.";
};

/// Ministral 3: Mistral with yarn and longer queries at distant positions.
struct Ministral3Config : WindowedConfig {
  static constexpr const char* kKind = "ministral3";
  static constexpr const char* kHelp =
      "Ministral 3: Mistral with yarn and longer queries at distant positions.";
  double attn_scale = 0.1;
  Ministral3Config() {
    rope_theta = 1000000, norm_eps = 1e-5;
    rope_scaling.type = RopeScaling::kYarn;
    rope_scaling.factor = 16, rope_scaling.original_max_seq_len = 16384;
    rope_scaling.mscale = rope_scaling.mscale_all_dim = 1;
  }

  template <class Visitor>
  void fields(Visitor& v) {
    WindowedConfig::fields(v);
    v("attn_scale", attn_scale,
      "Queries are multiplied by 1 + attn_scale ln(1 + floor(position / "
      "rope_scaling.original_max_seq_len)), positions from 0 within their document (llama_4_scaling_beta).",
      at_least(0));
  }
};

/// Return the model in the terms of the one decoder.
DecoderSpec spec_of(const MistralConfig& model);
DecoderSpec spec_of(const Ministral3Config& model);
/// Return the family's name in config.json, and how its keys are read and written there.
const HfFamily<MistralConfig>& hf_family(const MistralConfig&);
const HfFamily<Ministral3Config>& hf_family(const Ministral3Config&);

}  // namespace tycho
