// Questions to CUDA that libtycho_cuda.so answers for the engine, which has no CUDA headers. Torch-free.
#pragma once
#include <string>

#include "trainer/base/gpu_shape.h"
#include "trainer/kernels/twins/program_compiler.h"

namespace tycho {

/// CUDA versions are 13000 for 13.0.
struct DriverState {
  int num_gpus = 0;
  std::string error;  // words and number of CUDA: "no CUDA-capable device is detected (100)"; "" if none
  int driver = 0;     // newest CUDA that the driver supports; 0 without a driver
  int runtime = 0;    // CUDA that LibTorch uses here
};

struct DriverTable {
  DriverState (*state)() = nullptr;
  /// Returns {} for a GPU that does not answer.
  GpuShape (*shape)(int gpu) = nullptr;
  /// Opens the compiler on the first call.
  const ProgramCompiler& (*program_compiler)() = nullptr;
};

}  // namespace tycho
