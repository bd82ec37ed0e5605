// NCCL's half of libtycho_cuda.so. Torch-free.
#pragma once
#include "trainer/parallel/nccl/nccl_table.h"

namespace tycho {

const NcclTable* nccl_table();

}  // namespace tycho
