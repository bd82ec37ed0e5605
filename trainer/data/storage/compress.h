// Compresses a whole file in memory.
#pragma once
#include <string>
#include <string_view>

#include "trainer/data/storage/compression.h"

namespace tycho {

/// Compresses `raw`. The same input and version of the library give the same bytes. Throws Error (kFailure)
/// where the library fails, which happens when memory is short.
std::string compress_bytes(const Compression& compression, std::string_view raw);

}  // namespace tycho
