// Rotary positions, in place on packed query, key and value rows.
#pragma once
#include "trainer/kernels/attention/rope_frequencies.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

/// Returns attention_factor times cos and sin of position * radians[j] for position < num_positions: fp32
/// [num_positions, 2, r/2] on the CPU for r rotated elements of a head, computed in double.
Tensor rope_table(int64_t num_positions, const RopeFrequencies& frequencies);

/// Tables of queries and of keys; `keys` is undefined where both use the queries' table.
struct RopeTables {
  Tensor queries, keys;
};

/// Returns the tables of xPos (Sun et al. 2023, arXiv:2212.10554), as in flash-attn: z_j^p times rope_table
/// for queries and z_j^-p for keys, z_j = (2j/r + 0.4) / 1.4, p = (position - num_positions / 2) /
/// scale_base. A score then has z_j^(distance / scale_base), whatever the origin of p.
RopeTables xpos_tables(int64_t num_positions, const RopeFrequencies& frequencies, double scale_base);

/// Heads of a row, counted from its first one.
struct HeadRange {
  int64_t first, count;
};

/// Rotates `heads` of every row of qkv_NC in place, Hugging Face's halves: with a table of r/2 pairs, (x[j],
/// x[j + r/2]) of the first r <= head_dim elements of a head; the rest stays. Row n has position
/// first_position + n % seq. `inverse` applies the transpose: the gradient, and without xPos
/// and an attention factor the inverse rotation.
void rope(Tensor& qkv_NC, const Tensor& cos_sin, int64_t seq, int64_t first_position, HeadRange heads,
          int64_t head_dim, bool inverse);

}  // namespace tycho
