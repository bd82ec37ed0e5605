// Asks the CUDA runtime.
#include "trainer/cuda_plugin/entry/driver_plugin.h"

#include <fmt/format.h>

#include "trainer/kernels/cuda/program_places.h"
#include "trainer/kernels/cuda/status.h"

namespace tycho {
namespace {

DriverState state() {
  DriverState state;
  cudaDriverGetVersion(&state.driver);
  cudaRuntimeGetVersion(&state.runtime);
  const cudaError_t error = cudaGetDeviceCount(&state.num_gpus);
  if (error == cudaSuccess) return state;
  cudaGetLastError();  // so that LibTorch does not meet it
  state.num_gpus = 0;
  state.error = fmt::format("{} ({})", cudaGetErrorString(error), static_cast<int>(error));
  return state;
}

GpuShape shape(int gpu) {
  GpuShape shape;
  int major = 0, minor = 0;
  if (cudaDeviceGetAttribute(&shape.num_sms, cudaDevAttrMultiProcessorCount, gpu) != cudaSuccess ||
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, gpu) != cudaSuccess ||
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, gpu) != cudaSuccess)
    return {};
  shape.compute_capability = 10 * major + minor;
  return shape;
}

const ProgramCompiler& program_compiler() { return cuda::own_nvrtc().state(); }

constexpr DriverTable kTable = {.state = state, .shape = shape, .program_compiler = program_compiler};

}  // namespace

const DriverTable* driver_table() { return &kTable; }

}  // namespace tycho
