// The frequencies of rotary positions, plain and stretched over longer contexts.
#pragma once
#include <cstdint>
#include <vector>

#include "trainer/families/rope_config.h"

namespace tycho {

struct RopeFrequencies {
  std::vector<double> radians;  // per position, one for each rotated pair
  double attention_factor = 1;  // multiplies rotated queries and keys, so scores by its square
};

/// Returns the frequencies of rotary_dim / 2 pairs, d = rotary_dim: theta^(-2j/d) (Su et al. 2021,
/// arXiv:2104.09864), then scaled as by Hugging Face's rope_scaling:
///   linear:   divided by factor
///   dynamic:  with theta ((factor seq / original) - (factor - 1))^(d/(d-2)) for theta, in sequences of `seq`
///             positions that are longer than original_max_seq_len
///   llama3:   divided by factor where waves are longer than original / low_freq_factor, unchanged where
///             shorter than original / high_freq_factor, and linearly interpolated between
///   yarn:     divided by factor, unchanged, and linearly interpolated by the number of the pair between
///   those
///             that make beta_fast and beta_slow turns in `original` positions (Peng et al. 2023,
///             arXiv:2309.00071)
///   longrope: divided by short_factor, or in sequences of `seq` positions that are longer than original by
///             long_factor (Ding et al. 2024, arXiv:2402.13753)
/// `seq` is the length of the longest sequence that is computed together. Throws Error that names the value
/// when one is out of range.
RopeFrequencies rope_frequencies(int64_t rotary_dim, double theta, const RopeScalingConfig& scaling,
                                 int64_t seq);

}  // namespace tycho
