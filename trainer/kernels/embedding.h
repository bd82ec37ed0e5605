// The look-up table of tokens.
#pragma once
#include "trainer/kernels/tensor.h"

namespace tycho {

/// y_ND[n] = table_VD[tokens_N[n]]; tokens int32. Tokens outside [0, V) are an Error (CPU; checked once per
/// batch by the loader for CUDA).
void embedding(const Tensor& tokens_N, const Tensor& table_VD, Tensor& y_ND);

/// dtable_VD (fp32) += dy_ND summed by token. Repeatable.
void embedding_backward(const Tensor& tokens_N, const Tensor& dy_ND, Tensor& dtable_VD);

}  // namespace tycho
