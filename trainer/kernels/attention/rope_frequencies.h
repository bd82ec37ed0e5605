// The frequencies of rotary positions, plain and stretched over longer contexts.
#pragma once
#include <cstdint>
#include <vector>

#include "trainer/families/rope_config.h"

namespace tycho {

/// Returns the radians per position of each of head_dim / 2 pairs: theta^(-2j/d) (Su et al. 2021,
/// arXiv:2104.09864), then scaled as by Hugging Face's rope_scaling:
///   linear:  divided by factor
///   dynamic: with theta ((factor seq / original) - (factor - 1))^(d/(d-2)) for theta, in sequences of `seq`
///            positions that are longer than original_max_seq_len
///   llama3:  divided by factor where waves are longer than original / low_freq_factor, unchanged where
///            shorter than original / high_freq_factor, and linearly interpolated between
/// Throws Error that names the value when one is out of range.
std::vector<double> rope_frequencies(int64_t head_dim, double theta, const RopeScalingConfig& scaling,
                                     int64_t seq);

}  // namespace tycho
