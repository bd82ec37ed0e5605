// Attention on a GPU by cuDNN: faster than flash attention 2, with gradients added in any order.
#pragma once
#include <vector>

#include "trainer/kernels/attention/attention_rows.h"
#include "trainer/kernels/attention/rope.h"
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

/// Returns the reason why cuDNN's attention is not used for such rows (base/attention_limits.h); nullptr when
/// it is.
const char* cudnn_obstacle(at::ScalarType type, const AttentionShape& shape, const ScoreRules& rules);

/// Computes out_NE [B*T, H*d] from bf16 rows, causal. Returns the state for the backward, in ATen's memory.
/// Throws Error where there is an obstacle.
std::vector<Tensor> cudnn_attention(const AttentionShape& shape, const ScoreRules& rules,
                                    const AttentionRows& rows, Tensor& out_NE);
/// Writes `gradients` of the rows from dout_NE [B*T, H*d], rotated back (pack_gradients.h).
void cudnn_attention_backward(const AttentionShape& shape, const ScoreRules& rules, const AttentionRows& rows,
                              const Tensor& out_NE, const std::vector<Tensor>& state, const Tensor& dout_NE,
                              const AttentionRows& gradients, const RopeTables& rotation = {});

}  // namespace tycho
