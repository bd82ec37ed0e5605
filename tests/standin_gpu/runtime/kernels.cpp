// Kernels of LibTorch: registered and never run. Whoever launches one is told its name. Programs of recipes
// run.
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "tests/standin_gpu/runtime/state.h"
#include "tests/standin_nvrtc/image.h"

namespace {

std::mutex mutex;
std::map<const void*, std::string>& names() {
  static auto* const all = new std::map<const void*, std::string>;
  return *all;
}

using standin::RunImage;
std::set<RunImage>& programs() {
  static auto* const all = new std::set<RunImage>;
  return *all;
}
/// Returns null for a kernel of LibTorch.
RunImage program_of(const void* kernel) {
  const std::lock_guard lock(mutex);
  const auto run = reinterpret_cast<RunImage>(const_cast<void*>(kernel));
  return programs().contains(run) ? run : nullptr;
}

cudaError_t refuse(const void* kernel) {
  const std::lock_guard lock(mutex);
  const auto found = names().find(kernel);
  std::fprintf(
      stderr,
      "[standin] there is no GPU to run %s: its operator wants an entry in tests/standin_gpu/plugin\n",
      found == names().end() ? "a kernel" : found->second.c_str());
  return standin::report(cudaErrorInvalidDeviceFunction);
}

int unsupported(...) { return 801; }  // CUDA_ERROR_NOT_SUPPORTED

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, void*, void*, void*,
                            void*, int*) {
  const std::lock_guard lock(mutex);
  names()[host] = name;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3, dim3, void**, size_t, cudaStream_t) {
  return refuse(kernel);
}
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, void*) { return 0; }
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*) { return cudaSuccess; }
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t,
                             cudaStream_t) {
  const RunImage run = program_of(kernel);
  if (run == nullptr) return refuse(kernel);
  run(grid.x, block.x, arguments[0]);
  return cudaSuccess;
}
/// Programs of recipes, which tests/standin_nvrtc compiled.
cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption*, void**, unsigned,
                                cudaLibraryOption*, void**, unsigned) {
  const cudaError_t error = standin::called("cudaLibraryLoadData");
  if (error != cudaSuccess) return error;
  const RunImage run = standin::open_image(code);
  if (run == nullptr) return standin::report(cudaErrorInvalidKernelImage);
  const std::lock_guard lock(mutex);
  programs().insert(run);
  *library = reinterpret_cast<cudaLibrary_t>(run);
  return cudaSuccess;
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char*) {
  *kernel = reinterpret_cast<cudaKernel_t>(library);
  return cudaSuccess;
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void* kernel, void**) {
  return refuse(kernel);
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int, size_t,
                                                                   unsigned) {
  *blocks = 1;
  return cudaSuccess;
}

/// The driver's own functions, of which LibTorch looks up many and calls few.
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  *function = reinterpret_cast<void*>(&unsupported);
  if (result != nullptr) *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

}  // extern "C"
