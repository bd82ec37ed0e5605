// Attention for ranks that share sequences, with keys and values that travel from rank to rank.
#pragma once
#include "trainer/kernels/attention/attention.h"
#include "trainer/kernels/attention/attention_rows.h"
#include "trainer/kernels/attention/flash_attention.h"
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"
#include "trainer/models/context/context_region.h"

namespace tycho {

// N tokens of this rank, K kv heads of d, H query heads, E = H d.
/// Memory of a pass, dead when the pass returns.
struct RingWorkspace {
  Tensor kv;      // [2, N, 2 K d]: the current part, and the one that arrives
  Tensor d_kv;    // fp32 [3, N, 2 K d]: gradients from this rank, arriving, leaving
  Tensor sum_NE;  // fp32: sum of parts; not used where rows are fp32
};

/// Computes ring attention (Liu et al. 2023, arXiv:2310.01889) over the balanced parts of a ContextRegion: a
/// rank computes with the keys and values that it has, its own first, while it sends them to the next rank
/// and receives the previous one's. `shape`: of this rank's queries over all keys. own: rows of this rank.
/// Collective.
void ring_attention(const ContextRegion& context, const AttentionShape& shape, const ScoreRules& rules,
                    const AttentionRows& own, const RingWorkspace& room, AttentionSaved saved,
                    const FlashRules& flash);
/// Writes the gradients of this rank's rows. Gradients of keys and values travel with them, in fp32, until
/// they are back. Collective.
void ring_attention_backward(const ContextRegion& context, const AttentionShape& shape,
                             const ScoreRules& rules, const AttentionRows& own, const RingWorkspace& room,
                             AttentionSaved saved, const Tensor& dout_NE, const AttentionRows& gradients,
                             const FlashRules& flash);

}  // namespace tycho
