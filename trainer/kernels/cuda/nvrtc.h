// NVRTC, which compiles the programs of recipes for the GPU at hand.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "trainer/kernels/twins/program_compiler.h"

namespace tycho::cuda {

/// Architecture to compile for.
struct NvrtcTarget {
  int arch = 0;     // 90 for compute capability 9.0
  bool own = true;  // the GPU's own: machine code; else PTX of an older one, which the driver compiles
};
/// Chooses the GPU's own architecture from those that NVRTC knows, in ascending order; for a newer GPU the
/// newest. Throws Error (kTopology) for a GPU that is older than all.
NvrtcTarget choose_target(int compute_capability, const std::vector<int>& known);

/// Returns names and paths of libnvrtc in the order in which they are tried: by name, beside the CUDA runtime
/// in `runtime_folder`, in the toolkits that CUDA_HOME and CUDA_PATH name, in the usual place of a toolkit.
std::vector<std::string> nvrtc_paths(const std::string& runtime_folder);

/// An opened library. Any thread.
class Nvrtc {
 public:
  /// Opens the first of these names and paths that is there. state() says why none is.
  explicit Nvrtc(const std::vector<std::string>& paths);

  const ProgramCompiler& state() const { return state_; }
  /// Chooses from the architectures of this NVRTC. Throws Error (kTopology) as choose_target, and without
  /// NVRTC.
  NvrtcTarget target(int compute_capability) const;
  /// Returns machine code or PTX of a text of CUDA C, compiled without contraction. Throws Error (kFailure)
  /// with NVRTC's log.
  std::string compile(const std::string& text, const NvrtcTarget& target) const;

 private:
  using Handle = void*;  // nvrtcProgram
  /// Functions of nvrtc.h, whose results are 0 for success.
  struct Functions {
    int (*version)(int* major, int* minor) = nullptr;
    int (*num_archs)(int* count) = nullptr;
    int (*archs)(int* archs) = nullptr;
    int (*create)(Handle*, const char* text, const char* name, int num_headers, const char* const* headers,
                  const char* const* names) = nullptr;
    int (*compile)(Handle, int num_options, const char* const* options) = nullptr;
    int (*log_bytes)(Handle, size_t*) = nullptr;
    int (*log)(Handle, char*) = nullptr;
    int (*cubin_bytes)(Handle, size_t*) = nullptr;
    int (*cubin)(Handle, char*) = nullptr;
    int (*ptx_bytes)(Handle, size_t*) = nullptr;
    int (*ptx)(Handle, char*) = nullptr;
    int (*destroy)(Handle*) = nullptr;
  };

  std::string look_up(void* library);
  const Functions& functions() const;
  static std::string read_bytes(int (*size)(Handle, size_t*), int (*read)(Handle, char*), Handle program);

  ProgramCompiler state_;
  Functions functions_;
};

}  // namespace tycho::cuda
