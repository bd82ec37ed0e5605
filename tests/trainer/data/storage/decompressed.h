// A compressed file as one string, for tests.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "trainer/data/storage/decompress.h"

namespace tycho::testing {

inline std::string decompressed(const std::string& zip_path, CompressionKind kind, int64_t raw_bytes) {
  std::string raw;
  decompress(zip_path, kind, raw_bytes, [&](std::string_view piece) { raw += piece; });
  return raw;
}

}  // namespace tycho::testing
