// Decompresses a block in memory whose size is known.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/data/storage/compression.h"

namespace tycho {

/// Returns the `raw_bytes` that `stored` decompresses to; nothing if it gives another number of bytes. Memory
/// grows with the output, because a header may claim any size. Throws Error (kUnusable) for damaged data. Not
/// for snappy.
std::optional<std::string> decompress_sized(CompressionKind kind, std::string_view stored, size_t raw_bytes);

}  // namespace tycho
