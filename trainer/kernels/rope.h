// Rotary positions, in place on packed query, key and value rows.
#pragma once
#include "trainer/kernels/rope_frequencies.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

/// cos and sin of position * frequencies[j] for position < num_positions: fp32 [num_positions, 2, d/2] on the
/// CPU, computed in double. frequencies: rope_frequencies.
Tensor rope_table(int64_t num_positions, const std::vector<double>& frequencies);

/// Rotates the first `rotated_heads` heads of every row of qkv_NC in place, Hugging Face's halves: (x[j], x[j
/// + d/2]). Row r has position first_position + r % seq. `inverse` rotates back: the gradient.
void rope(Tensor& qkv_NC, const Tensor& cos_sin, int64_t seq, int64_t first_position, int64_t rotated_heads,
          int64_t head_dim, bool inverse);

}  // namespace tycho
