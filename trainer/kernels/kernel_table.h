// Raw entry points of the fused ops of one device. The CPU's is built in (one table per instruction set,
// chosen once); libtycho_cuda.so fills the CUDA one when it is loaded. Torch-free, so that CUDA sources
// compile without LibTorch.
#pragma once
#include <cstdint>

namespace tycho {

enum class Dtype : int { kFp32, kBf16 };
using Stream = void*;  // cudaStream_t; ignored by CPU kernels

/// N rows of D elements.
struct RowsShape {
  int64_t rows = 0, dim = 0;
};

struct RopeShape {
  int64_t rows = 0;  // N = B*T tokens
  int64_t seq = 0;   // T: row r has position first_position + r % seq
  int64_t first_position = 0;
  int64_t row_width = 0;      // elements between rows: (H + 2K) * d
  int64_t rotated_heads = 0;  // leading heads of a row to rotate: H + K
  int64_t head_dim = 0;       // d
};

struct AdamWScalars {
  double lr, beta1, beta2, eps, weight_decay;
  double bias_correction1, bias_correction2;  // 1 - beta^step
};

/// Every pointer is to contiguous memory of the table's device. Nothing here synchronises or allocates.
/// The contract of each is in the op's header: kernels/<op>.h.
struct KernelTable {
  const char* name = "";  // "cpu avx2", "cpu avx512", "cpu generic", "cuda"

  void (*rms_norm)(RowsShape, Dtype, const void* x, const void* weight, float eps, void* y, float* inv_rms,
                   Stream) = nullptr;
  void (*rms_norm_backward)(RowsShape, Dtype, const void* x, const void* weight, const float* inv_rms,
                            const void* dy, void* dx, bool add_to_dx, float* dweight, bool add_to_dweight,
                            float* workspace, Stream) = nullptr;
  /// floats of workspace that rms_norm_backward wants.
  int64_t (*rms_norm_backward_workspace)(RowsShape) = nullptr;

  void (*swiglu)(RowsShape, Dtype, const void* gate_up, void* y, Stream) = nullptr;
  void (*swiglu_backward)(RowsShape, Dtype, const void* gate_up, const void* dy, void* dgate_up, void* y,
                          Stream) = nullptr;

  void (*rope)(RopeShape, Dtype, const float* cos_sin, bool inverse, void* qkv, Stream) = nullptr;

  void (*embedding)(RowsShape, Dtype, const int32_t* tokens, const void* table, void* y, Stream) = nullptr;
  void (*embedding_backward)(RowsShape, Dtype, const int32_t* tokens, int64_t vocab, const void* dy,
                             float* dtable, void* workspace, Stream) = nullptr;
  /// bytes of workspace that embedding_backward wants.
  int64_t (*embedding_backward_workspace)(RowsShape, int64_t vocab) = nullptr;

  void (*cross_entropy)(RowsShape, Dtype, void* logits, const int32_t* targets, const float* weight,
                        bool write_gradient, float* loss, Stream) = nullptr;

  void (*adamw_step)(int64_t n, AdamWScalars, const float* grad_scale, Dtype, void* params, float* master,
                     const float* grads, float* m, float* v, Stream) = nullptr;
  /// sum += sum of squares of n floats, accumulated in double; fixed order, so repeatable.
  void (*sum_of_squares)(int64_t n, const float* x, double* sum, Stream) = nullptr;
  void (*cast)(int64_t n, Dtype from, const void* x, Dtype to, void* y, Stream) = nullptr;
  /// y (fp32) += x
  void (*add_to_fp32)(int64_t n, Dtype, const void* x, float* y, Stream) = nullptr;
};

/// The CPU's table: TYCHO_CPU=generic|avx2|avx512 overrides the choice, which is otherwise the best that the
/// CPU has. Throws Error (kUsage) when TYCHO_CPU names one that this machine cannot run.
const KernelTable& cpu_kernels();
/// Handed to the CUDA plug-in's tycho_cuda_init, which calls it. Throws Error when an entry is missing.
void set_cuda_kernels(const KernelTable* table);
/// The CUDA table. Throws "[kernels] no CUDA plug-in: ..." when there is none.
const KernelTable& cuda_kernels();

}  // namespace tycho
