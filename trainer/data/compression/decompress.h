// Decompresses a file whose size is known before, in bounded memory and without trusting it.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "trainer/data/compression/compression.h"

namespace tycho {

// All throw Error (kUnusable) that names the file when it cannot be read, is damaged or cut off, goes on
// after its end, or gives other than `raw_bytes` bytes. No more than that is ever kept: what would give more
// is stopped there. Memory: less than 1 MiB and the window of the format (zstd: at most 128 MiB); for snappy
// the compressed file and `raw_bytes`. May be called from any thread.

/// Into memory of the caller, which has exactly as many bytes as the file must give; zstd needs no window
/// for it. Throws Error (kTerminated) on a stop.
void decompress_into(const std::string& zip_path, CompressionKind kind, std::span<char> raw,
                     const std::stop_token& stop = {});

/// Into new memory, which grows with what comes.
std::string decompress_to_memory(const std::string& zip_path, CompressionKind kind, int64_t raw_bytes);

/// Piece by piece into `sink`, whose errors reach the caller. What came before an error is not to be used.
void decompress(const std::string& zip_path, CompressionKind kind, int64_t raw_bytes,
                const std::function<void(std::string_view)>& sink);

}  // namespace tycho
