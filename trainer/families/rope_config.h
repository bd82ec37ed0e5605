// Scaling of rotary positions beyond the length that a model was trained with.
#pragma once
#include <cstdint>

#include "trainer/base/fields.h"

namespace tycho {

enum class RopeScaling { kNone, kLinear, kDynamic, kLlama3 };
constexpr EnumNames<RopeScaling, 4> enum_names(RopeScaling) {
  return {{{"none", RopeScaling::kNone},
           {"linear", RopeScaling::kLinear},
           {"dynamic", RopeScaling::kDynamic},
           {"llama3", RopeScaling::kLlama3}}};
}

/// The fields of Hugging Face's rope_scaling.
struct RopeScalingConfig {
  RopeScaling type = RopeScaling::kNone;
  double factor = 8;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  int64_t original_max_seq_len = 8192;

  template <class Visitor>
  void fields(Visitor& v) {
    v("type", type,
      "none; linear: positions / factor; dynamic: a base that grows with the sequence (NTK); llama3: low "
      "frequencies are divided by factor, high ones kept.");
    v("factor", factor, "How many times longer the sequences are.", at_least(1));
    v("low_freq_factor", low_freq_factor,
      "llama3: wavelengths above original_max_seq_len / this are stretched by factor.", positive);
    v("high_freq_factor", high_freq_factor, "llama3: wavelengths below original_max_seq_len / this are kept.",
      positive);
    v("original_max_seq_len", original_max_seq_len,
      "Sequence length that the model was originally trained with.", positive);
  }
};

}  // namespace tycho
