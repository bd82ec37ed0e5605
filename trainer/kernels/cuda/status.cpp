// Converts errors of the CUDA runtime to Error.
#include "trainer/kernels/cuda/status.h"

#include "trainer/base/error.h"

namespace tycho::cuda {

void check_launch(const char* op) {
  const cudaError_t status = cudaGetLastError();
  TYCHO_CHECK(status == cudaSuccess,
              "[{}] the GPU rejected the kernel: {}. Was libtycho_cuda.so built for this GPU?", op,
              cudaGetErrorString(status));
}

void check_status(const char* op, const char* wanted, cudaError_t status) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // or the next launch would be blamed
  fail(ExitCode::kFailure, "[{}] expected {}, got a CUDA error: {}", op, wanted, cudaGetErrorString(status));
}

void check_shared_memory(const char* op, size_t shared_bytes, cudaError_t status) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  fail(ExitCode::kFailure,
       "[{}] expected {} bytes of shared memory for each block, more than this GPU has: {}. Its rows are too "
       "wide for this GPU; use a narrower model or a newer GPU",
       op, shared_bytes, cudaGetErrorString(status));
}

}  // namespace tycho::cuda
