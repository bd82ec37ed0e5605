// The NCCL of the plug-in that was loaded.
#include "trainer/cuda_plugin/nccl_table.h"

#include "trainer/base/error.h"

namespace tycho {
namespace {

const NcclTable* loaded = nullptr;

}  // namespace

void set_nccl(const NcclTable* table) { loaded = table; }

const NcclTable& nccl() {
  if (loaded == nullptr)
    fail(ExitCode::kTopology,
         "[nccl] ranks on GPUs need libtycho_cuda.so, which is not loaded: build with -DTYCHO_CUDA=ON");
  return *loaded;
}

}  // namespace tycho
