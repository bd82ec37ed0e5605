// Granite's configuration.
#pragma once
#include "trainer/families/dense_config.h"

namespace tycho {

struct DecoderSpec;
template <class Family>
struct HfFamily;

/// Granite 3, dense: Llama with multipliers of embeddings, branches, scores and logits.
struct GraniteConfig : DenseConfig {
  static constexpr const char* kKind = "granite";
  static constexpr const char* kHelp =
      "Granite 3, dense: Llama with multipliers of embeddings, branches, scores and logits.";
  bool attention_bias = false, ffn_bias = false;
  double embedding_multiplier = 12, residual_multiplier = 0.22, logits_scaling = 8;
  std::optional<double> attention_multiplier;

  template <class Visitor>
  void fields(Visitor& v) {
    DenseConfig::fields(v);
    v("attention_bias", attention_bias, "Biases in the attention projections.");
    v("ffn_bias", ffn_bias, "Biases in the feed-forward layer.");
    v("embedding_multiplier", embedding_multiplier, "Factor of embeddings.", positive);
    v("residual_multiplier", residual_multiplier, "Factor of each branch, before it is added.", positive);
    v("attention_multiplier", attention_multiplier, "Factor of scores. Default: 1 / head width.", positive);
    v("logits_scaling", logits_scaling, "Logits are divided by this.", positive);
  }
};

/// Returns the model in the terms of the one decoder.
DecoderSpec spec_of(const GraniteConfig& model);
/// Returns the family's name in config.json, and how its keys are read and written there.
const HfFamily<GraniteConfig>& hf_family(const GraniteConfig&);

}  // namespace tycho
