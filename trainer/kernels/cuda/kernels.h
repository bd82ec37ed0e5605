// The CUDA twins of kernels/cpu; contracts in kernels/<op>.h. They launch on the stream given and never wait.
#pragma once
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho::cuda {

/// Throws Error when the last launch was refused. Does not wait for the kernel.
void check_launch(const char* op);

TYCHO_KERNELS(TYCHO_DECLARE_KERNEL)

}  // namespace tycho::cuda
