// A program for the targets of one source: TYCHO_FUZZ_TARGET names the one that libFuzzer calls.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"

namespace {

const tycho::FuzzTarget& chosen_target() {
  static const std::vector<tycho::FuzzTarget> targets = tycho::TYCHO_FUZZ_GROUP();
  const char* name = std::getenv("TYCHO_FUZZ_TARGET");
  for (const tycho::FuzzTarget& target : targets)
    if (name != nullptr && std::strcmp(name, target.name) == 0) return target;
  std::fprintf(stderr, "TYCHO_FUZZ_TARGET wants one of:");
  for (const tycho::FuzzTarget& target : targets) std::fprintf(stderr, " %s", target.name);
  std::fprintf(stderr, "\n");
  std::exit(2);
}

}  // namespace

/// Puts the target's longest input in front of the options; a -max_len among them wins.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  static std::string max_len = "-max_len=" + std::to_string(chosen_target().max_bytes);
  static std::vector<char*> arguments(*argv, *argv + *argc);
  arguments.insert(arguments.begin() + 1, max_len.data());
  arguments.push_back(nullptr);
  *argv = arguments.data();
  ++*argc;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tycho::FuzzTarget& target = chosen_target();
  target.run({reinterpret_cast<const char*>(data), size});
  return 0;
}
