// Phi's configuration.
#pragma once
#include "trainer/families/dense_config.h"

namespace tycho {

struct DecoderSpec;
template <class Family>
struct HfFamily;

/// Phi-3, Phi-4 and Phi-4-mini (Abdin et al. 2024, arXiv:2404.14219): Llama with fused matrices, and
/// rotations of a part of each head.
struct Phi3Config : WindowedConfig {
  static constexpr const char* kKind = "phi3";
  static constexpr const char* kHelp =
      "Phi-3, Phi-4 and Phi-4-mini: Llama with fused matrices, and rotations of a part of each head.";
  double partial_rotary_factor = 1;
  double resid_dropout = 0;
  Phi3Config() { norm_eps = 1e-5; }

  template <class Visitor>
  void fields(Visitor& v) {
    WindowedConfig::fields(v);
    v("partial_rotary_factor", partial_rotary_factor,
      "Share of each head that is rotated, its first elements; the rest has no positions.", positive,
      at_most(1));
    v("resid_dropout", resid_dropout, "Dropout of each branch, before it is added (resid_pdrop).",
      below(0, 1));
  }
  int64_t rotary_dim() const {
    return static_cast<int64_t>(static_cast<double>(head_dim()) * partial_rotary_factor);
  }
};

/// Returns the model in the terms of the one decoder.
DecoderSpec spec_of(const Phi3Config& model);
/// Returns the family's name in config.json, and how its keys are read and written there.
const HfFamily<Phi3Config>& hf_family(const Phi3Config&);

}  // namespace tycho
