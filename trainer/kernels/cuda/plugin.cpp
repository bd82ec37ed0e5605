// The door of libtycho_cuda.so: hands the CUDA kernels to the engine that opened it.
#include <cuda_runtime_api.h>

#include "trainer/base/error.h"
#include "trainer/kernels/cuda/kernels.h"

namespace tycho::cuda {

static constexpr KernelTable kTable{.name = "cuda", TYCHO_KERNELS(TYCHO_TABLE_ENTRY)};

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
