// The entry point of libtycho_cuda.so: gives the CUDA kernels, NCCL, the driver and cuBLASLt to the engine
// that opened it.
#include "trainer/cuda_plugin/cuda_plugin.h"
#include "trainer/cuda_plugin/entry/driver_plugin.h"
#include "trainer/cuda_plugin/entry/nccl_plugin.h"
#include "trainer/kernels/cuda/kernels.h"
#include "trainer/kernels/cuda/library_product.h"

namespace tycho::cuda {

static constexpr KernelTable kTable{.name = "cuda", TYCHO_KERNELS(TYCHO_TABLE_ENTRY)};

}  // namespace tycho::cuda

void tycho_cuda_init(tycho::RegisterKernels* register_kernels, tycho::RegisterNccl* register_nccl,
                     tycho::RegisterDriver* register_driver, tycho::RegisterProducts* register_products) {
  register_kernels(&tycho::cuda::kTable);
  register_nccl(tycho::nccl_table());
  register_driver(tycho::driver_table());
  register_products(&tycho::cuda::cublas_lt_products());
}
