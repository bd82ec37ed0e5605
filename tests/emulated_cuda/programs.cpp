// Programs that are compiled while a test runs: the runtime's calls that load and launch them.
#include <cuda_runtime_api.h>

#include "tests/standin_nvrtc/image.h"
#include "trainer/kernels/cuda/program_places.h"

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
  return cudaSuccess;
}
cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption*, void**, unsigned,
                                cudaLibraryOption*, void**, unsigned) {
  *library = reinterpret_cast<cudaLibrary_t>(standin::open_image(code));
  return *library == nullptr ? cudaErrorInvalidValue : cudaSuccess;
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char*) {
  *kernel = reinterpret_cast<cudaKernel_t>(library);
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t,
                             cudaStream_t) {
  reinterpret_cast<standin::RunImage>(const_cast<void*>(kernel))(
      static_cast<unsigned>(grid.x), static_cast<unsigned>(block.x), arguments[0]);
  return cudaGetLastError();
}

namespace tycho::cuda {

const Nvrtc& own_nvrtc() {
  static const Nvrtc opened({TYCHO_EMULATED_NVRTC});
  return opened;
}
/// Programs of an emulator that has changed since would not fit.
std::string program_folder() { return ""; }

}  // namespace tycho::cuda
