// SwiGLU: silu(gate) * up over a packed pair.
#pragma once
#include "trainer/kernels/tensor.h"

namespace tycho {

/// y = silu(gate) * up; gate_up_N2F: [N, 2F] contiguous, gate first; y_NF. fp32 or bf16, arithmetic in fp32.
///                                                                       (Shazeer 2020, arXiv:2002.05202)
void swiglu(const Tensor& gate_up_N2F, Tensor& y_NF);

/// dgate_up_N2F from dy_NF; y_NF is written again (recomputed, so that it need not be kept). dgate_up may be
/// gate_up.
void swiglu_backward(const Tensor& gate_up_N2F, const Tensor& dy_NF, Tensor& dgate_up_N2F, Tensor& y_NF);

}  // namespace tycho
