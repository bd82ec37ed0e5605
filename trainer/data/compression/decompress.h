// Decompresses a file whose size is known before, in bounded memory and without trusting it.
#pragma once
#include <cstdint>
#include <string>

#include "trainer/base/file_ops.h"
#include "trainer/data/compression/compression.h"

namespace tycho {

// Both throw Error (kUnusable) that names the file when it cannot be read, is damaged or cut off, goes on
// after its end, or gives other than `raw_bytes` bytes. No more than that is ever kept: what would give more
// is stopped there. Memory: less than 1 MiB and the window of the format (zstd: at most 128 MiB); for snappy
// the compressed file and `raw_bytes`. May be called from any thread.

/// Into memory.
std::string decompress_to_memory(const std::string& zip_path, CompressionKind kind, int64_t raw_bytes);

/// Into the file `raw_path`, which is replaced when it is there: by a file beside it that gets its name when
/// it is whole. Several processes may do it at once. Throws Error (kStorage) when it cannot be written;
/// nothing is left behind then.
void decompress_to_file(FileOps& files, const std::string& zip_path, CompressionKind kind, int64_t raw_bytes,
                        const std::string& raw_path);

}  // namespace tycho
