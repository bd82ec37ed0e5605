// One binary for all targets: TYCHO_FUZZ_TARGET names the one that libFuzzer calls.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/targets.h"

namespace {

const tycho::FuzzTarget& chosen_target() {
  const char* name = std::getenv("TYCHO_FUZZ_TARGET");
  for (const tycho::FuzzTarget& target : tycho::fuzz_targets())
    if (name != nullptr && std::strcmp(name, target.name) == 0) return target;
  std::fprintf(stderr, "TYCHO_FUZZ_TARGET wants one of:");
  for (const tycho::FuzzTarget& target : tycho::fuzz_targets()) std::fprintf(stderr, " %s", target.name);
  std::fprintf(stderr, "\n");
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tycho::FuzzTarget& target = chosen_target();
  target.run({reinterpret_cast<const char*>(data), size});
  return 0;
}
