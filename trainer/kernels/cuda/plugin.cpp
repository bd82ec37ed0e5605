// The door of libtycho_cuda.so: hands the CUDA kernels to the engine that opened it.
#include <cuda_runtime_api.h>

#include "trainer/base/error.h"
#include "trainer/kernels/cuda/kernels.h"

namespace tycho::cuda {

static constexpr KernelTable kTable{
    .name = "cuda",
    .rms_norm = &rms_norm,
    .rms_norm_backward = &rms_norm_backward,
    .rms_norm_backward_workspace = &rms_norm_backward_workspace,
    .swiglu = &swiglu,
    .swiglu_backward = &swiglu_backward,
    .rope = &rope,
    .embedding = &embedding,
    .embedding_backward = &embedding_backward,
    .embedding_backward_workspace = &embedding_backward_workspace,
    .cross_entropy = &cross_entropy,
    .adamw_step = &adamw_step,
    .sum_of_squares = &sum_of_squares,
    .cast = &cast,
    .add_to_fp32 = &add_to_fp32,
};

void check_launch(const char* op) {
  const cudaError_t status = cudaGetLastError();
  TYCHO_CHECK(status == cudaSuccess,
              "[{}] the GPU refused the kernel: {}. Was libtycho_cuda.so built for this GPU?", op,
              cudaGetErrorString(status));
}

}  // namespace tycho::cuda

/// Called once by the engine after dlopen, with its own set_cuda_kernels.
extern "C" __attribute__((visibility("default"))) void tycho_cuda_init(
    void (*register_table)(const tycho::KernelTable*)) {
  register_table(&tycho::cuda::kTable);
}
