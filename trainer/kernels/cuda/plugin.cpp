// The door of libtycho_cuda.so: hands the CUDA kernels and NCCL to the engine that opened it.
#include <cuda_runtime_api.h>

#include "trainer/base/error.h"
#include "trainer/kernels/cuda/kernels.h"
#include "trainer/parallel/nccl_plugin.h"

namespace tycho::cuda {

static constexpr KernelTable kTable{.name = "cuda", TYCHO_KERNELS(TYCHO_TABLE_ENTRY)};

void check_launch(const char* op) {
  const cudaError_t status = cudaGetLastError();
  TYCHO_CHECK(status == cudaSuccess,
              "[{}] the GPU refused the kernel: {}. Was libtycho_cuda.so built for this GPU?", op,
              cudaGetErrorString(status));
}

}  // namespace tycho::cuda

/// Called once by the engine after dlopen, with its own set_cuda_kernels and set_nccl.
extern "C" __attribute__((visibility("default"))) void tycho_cuda_init(
    void (*register_kernels)(const tycho::KernelTable*), void (*register_nccl)(const tycho::NcclTable*)) {
  register_kernels(&tycho::cuda::kTable);
  register_nccl(tycho::nccl_table());
}
