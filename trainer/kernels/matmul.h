// Matrix products of linear layers, weights in Hugging Face order [out, in].
#pragma once
#include <string>

#include "trainer/kernels/tensor.h"

namespace tycho {

// N tokens, K inputs, M outputs. x, w, y, dy share one dtype (fp32 or bf16); accumulation is fp32. A GPU's
// products are cuBLASLt's, which adds and sums along with the product where it has an algorithm for it. Where
// it has none, own kernels do that apart, with one more rounding, as on a CPU; the first such form is said on
// standard error.

/// Terms that are added to a product; undefined tensors stand for nothing. The residual may be the result.
struct AddedTerms {
  Tensor bias_M;  // to every row
  Tensor residual_NM;
};
/// y_NM = x_NK · w_MKᵀ + what is added.
void matmul_nt(const Tensor& x_NK, const Tensor& w_MK, Tensor& y_NM, const AddedTerms& added = {});
/// y_NK = x_NM · w_MK + what is added, a bias_K and a residual_NK.
void matmul_nn(const Tensor& x_NM, const Tensor& w_MK, Tensor& y_NK, const AddedTerms& added = {});

/// A layer's matrix [M, K], or [K, M] with `in_out`, and its bias; undefined: none.
struct GeluLayer {
  const Tensor& weight;
  bool in_out = false;
  const Tensor& bias_M;
};
/// pre_NM = x_NK · weightᵀ + bias; y_NM = gelu_tanh(pre_NM). cuBLASLt computes both along with the product
/// where it has an algorithm for it.
void matmul_gelu(const GeluLayer& layer, const Tensor& x_NK, Tensor& pre_NM, Tensor& y_NM);
/// dpre_NK = (dy_NM · weight) gelu_tanh'(pre_NK), and y_NK = gelu_tanh(pre_NK), which was the layer's input.
/// The layer's bias is not read.
void matmul_gelu_backward(const GeluLayer& layer, const Tensor& dy_NM, const Tensor& pre_NK, Tensor& dpre_NK,
                          Tensor& y_NK);

/// Gradient of a bias beside that of a weight: the sums of one operand's columns (fp32); null for none.
struct ColumnSums {
  Tensor* of_dy_M = nullptr;
  Tensor* of_x_K = nullptr;
};
/// dw_MK (fp32) = dy_NMᵀ · x_NK, or += when accumulate, and the sums likewise.
void matmul_tn(const Tensor& dy_NM, const Tensor& x_NK, Tensor& dw_MK, bool accumulate, ColumnSums sums = {});

/// True if bf16 is multiplied by special units: a GPU's, or a CPU's where its kernels (kernel_table.h) use
/// them.
bool bf16_is_native(const at::Device& device);
/// True if our own kernel computes a CPU's products, else ATen does. TYCHO_GEMM=own|aten chooses for both
/// dtypes (Error (kUsage) for another word). By default bf16 is ours, and so is fp32 on x86-64 with AVX2 or
/// better. Gradients of bf16 weights are always ours on a CPU.
bool fp32_is_ours();
bool bf16_is_ours();
/// True if cuBLASLt multiplies on GPUs: where it is there, unless TYCHO_GEMM=aten.
bool gpu_library_multiplies();
/// Keeps this process from saying which forms the library lacks: for all ranks but one.
void silence_product_notes();
/// Describes how products of a dtype are computed on a device, for users and for comparing two runs: "fp32 by
/// Tycho's avx2 kernel", "bf16 by ATen", "bf16 by cuBLASLt 13.1.0".
std::string matmul_route(const at::Device& device, at::ScalarType dtype);

}  // namespace tycho
