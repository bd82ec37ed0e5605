// NCCL's half of libtycho_cuda.so. Torch-free.
#pragma once
#include "trainer/cuda_plugin/nccl_table.h"

namespace tycho {

const NcclTable* nccl_table();

}  // namespace tycho
