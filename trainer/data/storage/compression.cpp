// The table of kinds.
#include "trainer/data/storage/compression.h"

#include <array>
#include <charconv>

#include "trainer/base/error.h"

namespace tycho {
namespace {

struct KindOfCompression {
  CompressionKind kind;
  std::string_view extension;
  int least, most, usual;  // levels
};

constexpr std::array<KindOfCompression, 5> kKinds = {{{CompressionKind::kBrotli, "br", 0, 11, 11},
                                                      {CompressionKind::kBzip2, "bz2", 1, 9, 9},
                                                      {CompressionKind::kGzip, "gz", 0, 9, 9},
                                                      {CompressionKind::kSnappy, "snappy", 0, 0, 0},
                                                      {CompressionKind::kZstd, "zstd", 1, 22, 3}}};

}  // namespace

Compression parse_compression(std::string_view name, std::string_view place) {
  const size_t colon = name.find(':');
  for (const KindOfCompression& kind : kKinds) {
    if (name.substr(0, colon) != kind.extension) continue;
    Compression compression{kind.kind, kind.usual, std::string(name)};
    if (colon == std::string_view::npos) return compression;
    const std::string_view digits = name.substr(colon + 1);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), compression.level);
    if (error == std::errc() && end == digits.data() + digits.size() && kind.most > 0 &&
        compression.level >= kind.least && compression.level <= kind.most)
      return compression;
    if (kind.most == 0)
      fail(ExitCode::kUnusable, "{} has the compression \"{}\", but {} has no levels; write \"{}\"", place,
           name, kind.extension, kind.extension);
    fail(ExitCode::kUnusable, "{} has the compression \"{}\", but levels of {} are {} to {}", place, name,
         kind.extension, kind.least, kind.most);
  }
  fail(ExitCode::kUnusable,
       "{} has the compression \"{}\", which is not known; there are zstd, gz, br, bz2 and snappy", place,
       name);
}

std::string_view compression_extension(CompressionKind kind) {
  return kKinds[static_cast<size_t>(kind)].extension;
}

}  // namespace tycho
