// The look-up tables of tokens and, where a model learns them, of positions.
#pragma once
#include "trainer/kernels/tensor.h"

namespace tycho {

/// Row r of a batch has position first_position + r % seq. Without a table nothing is added.
struct LearnedPositions {
  Tensor table_PD;
  int64_t seq = 1, first_position = 0;
};

/// y_ND[n] = table_VD[tokens_N[n]] (+ its position's row); tokens int32, the rest of one dtype, fp32 or bf16.
/// A position beyond the table is an Error. Tokens outside [0, V) are an Error (CPU; checked once per batch
/// by the loader for CUDA).
void embedding(const Tensor& tokens_N, const Tensor& table_VD, Tensor& y_ND,
               const LearnedPositions& positions = {});

/// dtable_VD (fp32) += dy_ND summed by token. Repeatable.
void embedding_backward(const Tensor& tokens_N, const Tensor& dy_ND, Tensor& dtable_VD);

/// dtable_PD[t] (fp32) = dy_ND[t] + dy_ND[seq + t] + ... for each t < seq and 0 for the rest, or += that.
/// Repeatable.
void position_gradient(const Tensor& dy_ND, int64_t seq, Tensor& dtable_PD, bool add);

}  // namespace tycho
