// NVRTC is looked for by its name, then beside the CUDA runtime that this process uses, then in toolkits.
#include "trainer/kernels/cuda/program_places.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <filesystem>

#include "trainer/base/cached_text.h"

namespace tycho::cuda {

const Nvrtc& own_nvrtc() {
  static const Nvrtc opened = [] {
    Dl_info info;
    const bool found = dladdr(reinterpret_cast<const void*>(&cudaRuntimeGetVersion), &info) != 0;
    return Nvrtc(nvrtc_paths(found ? std::filesystem::absolute(info.dli_fname).parent_path().string() : "."));
  }();
  return opened;
}

std::string program_folder() { return cached_folder("programs"); }

}  // namespace tycho::cuda
