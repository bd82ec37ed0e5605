// NVRTC by its C functions, looked up by name: neither this library nor its users need NVRTC to be there.
#include "trainer/kernels/cuda/nvrtc.h"

#include <dlfcn.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "trainer/base/environment.h"
#include "trainer/base/error.h"

namespace tycho::cuda {
namespace {

constexpr const char* kName = "libnvrtc.so.13";

std::string path_of(const void* function) {
  Dl_info info;
  return dladdr(function, &info) != 0 ? info.dli_fname : "";
}

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string capability_text(int capability) { return fmt::format("{}.{}", capability / 10, capability % 10); }

}  // namespace

std::vector<std::string> nvrtc_paths(const std::string& runtime_folder) {
  std::vector<std::string> folders = {runtime_folder};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const std::string home = environment_variable(variable); !home.empty())
      folders.push_back(home + "/lib64");
  folders.emplace_back("/usr/local/cuda/lib64");
  std::vector<std::string> paths = {kName};
  for (const std::string& folder : folders) paths.push_back(folder + "/" + kName);
  return paths;
}

NvrtcTarget choose_target(int compute_capability, const std::vector<int>& known) {
  const auto above = std::upper_bound(known.begin(), known.end(), compute_capability);
  if (above == known.begin())
    fail(ExitCode::kTopology,
         "[run_program] expected a GPU that NVRTC compiles for, got compute capability {}; this NVRTC knows "
         "{} "
         "and newer",
         capability_text(compute_capability), known.empty() ? "none" : capability_text(known.front()));
  return {.arch = above[-1], .own = above[-1] == compute_capability};
}

Nvrtc::Nvrtc(const std::vector<std::string>& paths) {
  void* library = nullptr;
  for (const std::string& path : paths)
    if (library == nullptr) library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    state_.problem = fmt::format(
        "expected NVRTC ({}), which compiles the mathematics of recipes for the GPU; it is not at {}. Run "
        "scripts/setup --cuda, install the package nvidia-cuda-nvrtc or a CUDA 13 toolkit, or name its "
        "folder "
        "in LD_LIBRARY_PATH",
        kName, fmt::join(paths, ", "));
    return;
  }
  if (const std::string missing = look_up(library); !missing.empty()) {
    state_.problem = fmt::format("expected NVRTC 13 in {}, got a library without {}", kName, missing);
    return;
  }
  int major = 0, minor = 0;
  functions_.version(&major, &minor);
  state_.version = 1000 * major + 10 * minor;
  state_.path = path_of(reinterpret_cast<const void*>(functions_.compile));
}

/// Returns the name of the first function that the library lacks, or "".
std::string Nvrtc::look_up(void* library) {
  std::string missing;
  const auto find = [&]<class F>(const char* name, F*& to) {
    to = reinterpret_cast<F*>(dlsym(library, name));
    if (to == nullptr && missing.empty()) missing = name;
  };
  Functions& f = functions_;
  find("nvrtcVersion", f.version), find("nvrtcGetNumSupportedArchs", f.num_archs);
  find("nvrtcGetSupportedArchs", f.archs), find("nvrtcCreateProgram", f.create);
  find("nvrtcCompileProgram", f.compile), find("nvrtcDestroyProgram", f.destroy);
  find("nvrtcGetProgramLogSize", f.log_bytes), find("nvrtcGetProgramLog", f.log);
  find("nvrtcGetCUBINSize", f.cubin_bytes), find("nvrtcGetCUBIN", f.cubin);
  find("nvrtcGetPTXSize", f.ptx_bytes), find("nvrtcGetPTX", f.ptx);
  return missing;
}

const Nvrtc::Functions& Nvrtc::functions() const {
  if (!state_.problem.empty()) fail(ExitCode::kTopology, "[run_program] {}", state_.problem);
  return functions_;
}

/// Reads text or code in two calls, as NVRTC gives them.
std::string Nvrtc::read_bytes(int (*size)(Handle, size_t*), int (*read)(Handle, char*), Handle program) {
  size_t num_bytes = 0;
  if (size(program, &num_bytes) != 0) return "";
  std::string bytes(num_bytes, '\0');
  return read(program, bytes.data()) == 0 ? bytes : "";
}

NvrtcTarget Nvrtc::target(int compute_capability) const {
  const Functions& f = functions();
  int count = 0;
  f.num_archs(&count);
  std::vector<int> known(static_cast<size_t>(count));
  f.archs(known.data());
  std::sort(known.begin(), known.end());
  return choose_target(compute_capability, known);
}

std::string Nvrtc::compile(const std::string& text, const NvrtcTarget& target) const {
  const Functions& f = functions();
  Handle handle = nullptr;
  const int created = f.create(&handle, text.c_str(), "tycho_program.cu", 0, nullptr, nullptr);
  TYCHO_CHECK(created == 0, "[run_program] NVRTC takes no program: error {}", created);
  const auto destroy = [&](Handle* program) { f.destroy(program); };
  const std::unique_ptr<Handle, decltype(destroy)> destroyed_at_the_end(&handle, destroy);
  const std::string arch =
      fmt::format("--gpu-architecture={}_{}", target.own ? "sm" : "compute", target.arch);
  const char* const options[] = {arch.c_str(), "--fmad=false", "--std=c++20"};
  const int status = f.compile(handle, std::size(options), options);
  TYCHO_CHECK(status == 0,
              "[run_program] NVRTC {} ({}) does not compile this recipe's program for {}; please report it: "
              "{}",
              version_text(state_.version), state_.path, arch,
              read_bytes(f.log_bytes, f.log, handle).c_str());
  std::string code =
      target.own ? read_bytes(f.cubin_bytes, f.cubin, handle) : read_bytes(f.ptx_bytes, f.ptx, handle);
  TYCHO_CHECK(!code.empty(), "[run_program] expected code from NVRTC for {}, got none", arch);
  return code;
}

}  // namespace tycho::cuda
