// A fetched file as text, for the tests of identities.
#pragma once
#include <string>

#include "trainer/data/storage/remote_files.h"

namespace tycho::testing {

struct FetchedText final : FetchSink {
  void begin(int64_t) override { text.clear(); }
  void write(const char* data, size_t num_bytes) override { text.append(data, num_bytes); }
  std::string text;
};

}  // namespace tycho::testing
