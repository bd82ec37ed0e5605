// Matrix products of linear layers, weights in Hugging Face order [out, in].
#pragma once
#include <string>

#include "trainer/kernels/tensor.h"

namespace tycho {

// N tokens, K inputs, M outputs. x, w, y, dy share one dtype (fp32 or bf16); accumulation is fp32.

/// y_NM = x_NK · w_MKᵀ (+ residual_NM when given; y may be the residual).
void matmul_nt(const Tensor& x_NK, const Tensor& w_MK, Tensor& y_NM);
void matmul_nt_add(const Tensor& x_NK, const Tensor& w_MK, const Tensor& residual_NM, Tensor& y_NM);
/// dx_NK = dy_NM · w_MK, or += when accumulate.
void matmul_nn(const Tensor& dy_NM, const Tensor& w_MK, Tensor& dx_NK, bool accumulate = false);
/// dw_MK (fp32) = dy_NMᵀ · x_NK, or += when accumulate.
void matmul_tn(const Tensor& dy_NM, const Tensor& x_NK, Tensor& dw_MK, bool accumulate);

/// True if bf16 is multiplied by special units: a GPU's, or a CPU's where its kernels (kernel_table.h) use
/// them.
bool bf16_is_native(const at::Device& device);
/// True if our own kernel computes a CPU's products, else ATen does. TYCHO_GEMM=own|aten chooses for both
/// dtypes (Error (kUsage) for another word). By default bf16 is ours, and so is fp32 on x86-64 with AVX2 or
/// better. Gradients of bf16 weights are always ours on a CPU.
bool fp32_is_ours();
bool bf16_is_ours();
/// Describes how products of a dtype are computed on a device, for users and for comparing two runs: "fp32 by
/// Tycho's avx2 kernel", "bf16 by ATen".
std::string matmul_route(const at::Device& device, at::ScalarType dtype);

}  // namespace tycho
