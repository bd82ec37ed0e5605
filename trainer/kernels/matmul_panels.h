// bf16 products on CPUs without bf16 matrix units: operands become fp32 in bounded scratch, products are
// fp32.
#pragma once
#include "trainer/kernels/tensor.h"

namespace tycho::panels {

// Operands are checked by matmul.cpp. Scratch belongs to the calling thread and is kept: at most 24 MiB.

/// y = x · wᵀ (+ residual when defined); rounded to bf16 once. y may be the residual.
void matmul_nt(const Tensor& x_NK, const Tensor& w_MK, const Tensor& residual_NM, Tensor& y_NM);
/// dx (+)= dy · w; rounded once.
void matmul_nn(const Tensor& dy_NM, const Tensor& w_MK, Tensor& dx_NK, bool accumulate);
/// dw (fp32) (+)= dyᵀ · x, summed in fp32.
void matmul_tn(const Tensor& dy_NM, const Tensor& x_NK, Tensor& dw_MK, bool accumulate);
/// The same through ATen's bf16 product, which is rounded to bf16 before it is added.
void matmul_tn_native_bf16(const Tensor& dy_NM, const Tensor& x_NK, Tensor& dw_MK, bool accumulate);

}  // namespace tycho::panels
