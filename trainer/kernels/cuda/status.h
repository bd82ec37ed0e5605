// Turns the status that a function of the CUDA runtime returns into an Error.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>

#include "trainer/kernels/cuda/kernels.h"

namespace tycho::cuda {

/// Throws Error "[op] expected ..., got an error of CUDA: ..." unless the call succeeded.
void check_status(const char* op, const char* wanted, cudaError_t status);
/// Throws such an Error for a failed call that sets the attribute for so much dynamic shared memory.
void check_shared_memory(const char* op, size_t shared_bytes, cudaError_t status);

/// Allows a kernel so much dynamic shared memory; call it before each launch that takes some. Whether a
/// launch needs the attribute depends on the kernel's static shared memory too, so it is always set: that
/// costs less than asking.
template <class... Arguments>
void allow_shared_memory(const char* op, void (*kernel)(Arguments...), size_t shared_bytes) {
  check_shared_memory(
      op, shared_bytes,
      cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(shared_bytes)));
}

}  // namespace tycho::cuda
