// Parsers of untrusted bytes, each as a function of any bytes: fuzzed by libFuzzer, replayed on the corpus by
// a test.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace tycho {

/// `run` returns for whatever bytes: refusing them by an Error is right, everything else (a crash, another
/// exception, minutes of work) is a finding.
struct FuzzTarget {
  const char* name;  // of the target and of its folder in corpus/
  void (*run)(std::string_view bytes);
};

const std::vector<FuzzTarget>& fuzz_targets();

}  // namespace tycho
