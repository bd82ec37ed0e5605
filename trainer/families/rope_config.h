// Scaling of rotary positions beyond the length that a model was trained with.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/base/fields.h"

namespace tycho {

enum class RopeScaling { kNone, kLinear, kDynamic, kLlama3, kYarn, kLongrope };
constexpr EnumNames<RopeScaling, 6> enum_names(RopeScaling) {
  return {{{"none", RopeScaling::kNone},
           {"linear", RopeScaling::kLinear},
           {"dynamic", RopeScaling::kDynamic},
           {"llama3", RopeScaling::kLlama3},
           {"yarn", RopeScaling::kYarn},
           {"longrope", RopeScaling::kLongrope}}};
}

/// The fields of Hugging Face's rope_scaling.
struct RopeScalingConfig {
  RopeScaling type = RopeScaling::kNone;
  double factor = 8;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  int64_t original_max_seq_len = 8192;
  double beta_fast = 32;
  double beta_slow = 1;
  bool truncate = true;
  std::optional<double> mscale, mscale_all_dim;
  std::optional<double> attention_factor;
  std::vector<double> short_factor, long_factor;

  template <class Visitor>
  void fields(Visitor& v) {
    v("type", type,
      "none; linear: positions / factor; dynamic: a base that grows with the sequence (NTK); llama3: low "
      "frequencies are divided by factor, high ones kept; yarn: the same with a ramp between them, and "
      "larger "
      "scores; longrope: a divisor for each frequency, and larger scores.");
    v("factor", factor,
      "How many times longer the sequences are. longrope: only the default of attention_factor uses it.",
      at_least(1));
    v("low_freq_factor", low_freq_factor,
      "llama3: wavelengths above original_max_seq_len / this are stretched by factor.", positive);
    v("high_freq_factor", high_freq_factor, "llama3: wavelengths below original_max_seq_len / this are kept.",
      positive);
    v("original_max_seq_len", original_max_seq_len,
      "Sequence length that the model was originally trained with.", positive);
    v("beta_fast", beta_fast,
      "yarn: frequencies with more turns than this in original_max_seq_len positions are kept.", positive);
    v("beta_slow", beta_slow,
      "yarn: frequencies with fewer turns than this in original_max_seq_len positions are divided by factor.",
      positive);
    v("truncate", truncate, "yarn: round the ends of the ramp outwards to whole frequencies.");
    v("mscale", mscale,
      "yarn, with mscale_all_dim: attention_factor is (0.1 mscale ln(factor) + 1) / (0.1 mscale_all_dim "
      "ln(factor) + 1).",
      positive);
    v("mscale_all_dim", mscale_all_dim, "yarn: see mscale.", positive);
    v("attention_factor", attention_factor,
      "yarn, longrope: factor of rotated queries and keys, at every length. Default: 0.1 ln(factor) + 1 in "
      "yarn, sqrt(1 + ln(factor) / ln(original_max_seq_len)) in longrope.",
      positive);
    v("short_factor", short_factor,
      "longrope: divisors of the frequencies in sequences of up to original_max_seq_len positions, one for "
      "each rotated pair.",
      positive);
    v("long_factor", long_factor, "longrope: divisors of the frequencies in longer sequences.", positive);
  }
};

}  // namespace tycho
