// How this program was built; cmake/BuildFacts.cmake writes the definition.
#pragma once

namespace tycho {

struct BuildFacts {
  const char* version;     // "0.1.0", from CMakeLists.txt
  const char* commit;      // twelve digits of the commit; "" outside of git
  const char* torch;       // release of LibTorch: "2.11"
  const char* cuda_major;  // "13"; "" for a build without CUDA
};

const BuildFacts& build_facts();

}  // namespace tycho
