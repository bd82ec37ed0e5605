// The compiler of the mathematics of recipes for a GPU, as the engine sees it. Torch-free.
#pragma once
#include <string>

namespace tycho {

/// NVRTC, which compiles the mathematics of recipes for the GPU, or why there is none.
struct ProgramCompiler {
  std::string problem;  // "" if there is one
  std::string path;     // of the library
  int version = 0;      // 13000 for 13.0
};

}  // namespace tycho
