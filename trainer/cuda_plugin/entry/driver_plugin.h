// CUDA's answers about drivers and GPUs, in libtycho_cuda.so. Torch-free.
#pragma once
#include "trainer/cuda_plugin/driver_table.h"

namespace tycho {

const DriverTable* driver_table();

}  // namespace tycho
