// NVRTC is first of all looked for beside the CUDA runtime that this process uses.
#include "trainer/kernels/cuda/program_paths.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <filesystem>

#include "trainer/base/environment.h"
#include "trainer/kernels/cuda/nvrtc.h"

namespace tycho::cuda {

std::vector<std::string> own_nvrtc_paths() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&cudaRuntimeGetVersion), &info) == 0) return nvrtc_paths(".");
  return nvrtc_paths(std::filesystem::absolute(info.dli_fname).parent_path());
}

std::string program_folder() {
  if (const std::string caches = environment_variable("XDG_CACHE_HOME"); !caches.empty())
    return caches + "/tycho/programs";
  const std::string home = environment_variable("HOME");
  return home.empty() ? "" : home + "/.cache/tycho/programs";
}

}  // namespace tycho::cuda
