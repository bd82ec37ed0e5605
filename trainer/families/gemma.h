// Gemma configurations.
#pragma once
#include "trainer/base/activation.h"
#include "trainer/families/dense_config.h"

namespace tycho {

struct DecoderSpec;
template <class Family>
struct HfFamily;

/// The keys of Gemma 2 and 3: norms before and after each branch, which multiply by 1 + weight, a
/// feed-forward gated by GELU, embeddings scaled by sqrt(width).
struct GemmaConfig : WindowedConfig {
  double query_pre_attn_scalar = 256;
  std::optional<double> final_softcap;
  GemmaConfig() { activation = Activation::kGeluTanh; }

  template <class Visitor>
  void fields(Visitor& v) {
    WindowedConfig::fields(v);
    v("query_pre_attn_scalar", query_pre_attn_scalar,
      "Scores are divided by the square root of this, instead of that of the head's width.", positive);
    v("final_softcap", final_softcap, "Logits become softcap tanh(logits / softcap). Default: as they are.",
      positive);
  }
};

/// Gemma 2 (Gemma Team 2024, arXiv:2408.00118).
struct Gemma2Config : GemmaConfig {
  static constexpr const char* kKind = "gemma2";
  static constexpr const char* kHelp =
      "Gemma 2: norms before and after each branch, softcaps, windows in every second block.";
  std::optional<double> attn_softcap = 50;
  Gemma2Config() {
    tied = true, head_width = 256, final_softcap = 30;
    sliding_window = 4095, layer_types = {LayerType::kSliding, LayerType::kFull};
  }

  template <class Visitor>
  void fields(Visitor& v) {
    GemmaConfig::fields(v);
    v("attn_softcap", attn_softcap, "Scores become softcap tanh(scores / softcap); t.null: as they are.",
      positive);
  }
};

/// Gemma 3, text (Gemma Team 2025, arXiv:2503.19786).
struct Gemma3Config : GemmaConfig {
  static constexpr const char* kKind = "gemma3";
  static constexpr const char* kHelp =
      "Gemma 3 (text): Gemma 2 without softcaps, with norms of queries and keys, and five blocks with "
      "windows "
      "and a rotary base of their own to one without.";
  double rope_local_theta = 10000;
  Gemma3Config() {
    tied = true, head_width = 256, rope_theta = 1000000, sliding_window = 511;
    layer_types = std::vector<LayerType>(6, LayerType::kSliding);
    layer_types.back() = LayerType::kFull;
  }

  template <class Visitor>
  void fields(Visitor& v) {
    GemmaConfig::fields(v);
    v("rope_local_theta", rope_local_theta,
      "Base of the rotary frequencies of sliding blocks, which rope_scaling does not touch.", positive);
  }
};

/// Return the model in the terms of the one decoder.
DecoderSpec spec_of(const Gemma2Config& model);
DecoderSpec spec_of(const Gemma3Config& model);
/// Return the family's name in config.json, and how its keys are read and written there.
const HfFamily<Gemma2Config>& hf_family(const Gemma2Config&);
const HfFamily<Gemma3Config>& hf_family(const Gemma3Config&);

}  // namespace tycho
