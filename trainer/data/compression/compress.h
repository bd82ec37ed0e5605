// Compresses a whole file in memory.
#pragma once
#include <string>
#include <string_view>

#include "trainer/data/compression/compression.h"

namespace tycho {

/// The same bytes for the same input and version of the library. Throws Error (kFailure) where the library
/// fails, which is when memory is short.
std::string compress_bytes(const Compression& compression, std::string_view raw);

}  // namespace tycho
