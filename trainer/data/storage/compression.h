// Formats of compressed files, by the names that mosaicml-streaming uses: "zstd:3".
#pragma once
#include <string>
#include <string_view>

namespace tycho {

enum class CompressionKind { kBrotli, kBzip2, kGzip, kSnappy, kZstd };

struct Compression {
  CompressionKind kind = CompressionKind::kZstd;
  int level = 0;     // 0 for snappy, which has none
  std::string name;  // as given: "zstd" and "zstd:3" mean the same but differ here
};

/// Reads "br" (level 0 to 11, default 11), "bz2" (1 to 9, default 9), "gz" (0 to 9, default 9), "snappy" or
/// "zstd" (1 to 22, default 3); each but snappy also with ":LEVEL". Throws Error (kUnusable) "PLACE ..." that
/// lists them.
Compression parse_compression(std::string_view name, std::string_view place);

/// Returns the ending of names of such files, without a dot: "zstd", "gz".
std::string_view compression_extension(CompressionKind kind);

}  // namespace tycho
