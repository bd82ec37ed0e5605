// How a file is compressed, by the names that mosaicml-streaming uses: "zstd:3".
#pragma once
#include <string>
#include <string_view>

namespace tycho {

enum class CompressionKind { kBrotli, kBzip2, kGzip, kSnappy, kZstd };

struct Compression {
  CompressionKind kind = CompressionKind::kZstd;
  int level = 0;     // 0 for snappy, which has none
  std::string name;  // as given: "zstd" is not "zstd:3", which says the same
};

/// Reads "br" (level 0 to 11, default 11), "bz2" (1 to 9, 9), "gz" (0 to 9, 9), "snappy" or "zstd" (1 to 22,
/// 3), each but snappy also with ":LEVEL". Throws Error (kUnusable) "PLACE ..." that lists them.
Compression parse_compression(std::string_view name, std::string_view place);

/// What the names of such files end in, without a dot: "zstd", "gz".
std::string_view compression_extension(CompressionKind kind);

}  // namespace tycho
