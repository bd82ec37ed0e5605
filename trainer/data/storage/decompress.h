// Decompresses a file of known size in bounded memory, without trusting the file.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "trainer/data/storage/compression.h"

namespace tycho {

// All functions throw Error (kUnusable) that names the file when it cannot be read, is damaged or cut off,
// continues after its end, or gives other than `raw_bytes` bytes. No more bytes than that are ever kept:
// decoding stops at the first byte too many. Memory: less than 1 MiB and the window of the format (zstd: at
// most 128 MiB); for snappy the compressed file and `raw_bytes`. May be called from any thread.

/// Decompresses into the caller's memory, which has exactly as many bytes as the file must give; zstd needs
/// no window for this. Throws Error (kTerminated) on a stop.
void decompress_into(const std::string& zip_path, CompressionKind kind, std::span<char> raw,
                     const std::stop_token& stop = {});

/// Decompresses piece by piece into `sink`, whose errors reach the caller. Discard the output if an error is
/// thrown.
void decompress(const std::string& zip_path, CompressionKind kind, int64_t raw_bytes,
                const std::function<void(std::string_view)>& sink);

}  // namespace tycho
