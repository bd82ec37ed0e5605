// Parsers of untrusted bytes, each as a function of any bytes: fuzzed by libFuzzer, replayed on the corpus by
// a test.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "trainer/base/error.h"

namespace tycho {

/// `run` returns for whatever bytes: refusing them by an Error is right, everything else (a crash, another
/// exception, minutes of work) is a finding.
struct FuzzTarget {
  const char* name;  // of the target and of its folder in corpus/
  void (*run)(std::string_view bytes);
  int max_bytes = 1024;  // of an input that the fuzzer makes: longer ones are slower and say little more
};

/// Of recipes and what becomes one.
std::vector<FuzzTarget> recipe_fuzz_targets();
/// Of data sets, tokenizers and models of others.
std::vector<FuzzTarget> data_fuzz_targets();
/// Of checkpoints, records of runs, and commands.
std::vector<FuzzTarget> record_fuzz_targets();
/// Of short texts and patterns, and of what ranks send each other.
std::vector<FuzzTarget> text_fuzz_targets();

inline std::vector<FuzzTarget> fuzz_targets() {
  std::vector<FuzzTarget> all = recipe_fuzz_targets();
  for (const auto& more : {data_fuzz_targets(), record_fuzz_targets(), text_fuzz_targets()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// For what must hold whatever the bytes are.
inline void must(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

/// A refusal with a message is what bad bytes should get.
template <class Body>
void refused_or_taken(Body&& body) {
  try {
    body();
  } catch (const Error&) {
  }
}

}  // namespace tycho
