// One function of each library.
#include "trainer/data/storage/compress.h"

#include <brotli/encode.h>
#include <bzlib.h>
#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include "trainer/base/error.h"

namespace tycho {
namespace {

std::string zstd_compress(int level, std::string_view raw) {
  std::string zip(ZSTD_compressBound(raw.size()), '\0');
  const size_t size = ZSTD_compress(zip.data(), zip.size(), raw.data(), raw.size(), level);
  TYCHO_CHECK(!ZSTD_isError(size), "[compression] zstd failed: {}", ZSTD_getErrorName(size));
  zip.resize(size);
  return zip;
}

/// Writes a header without a time stamp, so that the same data gives the same bytes.
std::string gzip_compress(int level, std::string_view raw) {
  constexpr int kGzipHeader = 15 + 16, kMemoryLevel = 8;
  z_stream stream = {};
  TYCHO_CHECK(deflateInit2(&stream, level, Z_DEFLATED, kGzipHeader, kMemoryLevel, Z_DEFAULT_STRATEGY) == Z_OK,
              "[compression] zlib has no memory");
  std::string zip(deflateBound(&stream, raw.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(raw.data()));
  stream.avail_in = static_cast<uInt>(raw.size());
  stream.next_out = reinterpret_cast<Bytef*>(zip.data());
  stream.avail_out = static_cast<uInt>(zip.size());
  const int status = deflate(&stream, Z_FINISH);
  zip.resize(stream.total_out);
  deflateEnd(&stream);
  TYCHO_CHECK(status == Z_STREAM_END, "[compression] zlib failed with status {}", status);
  return zip;
}

std::string bzip2_compress(int level, std::string_view raw) {
  std::string zip(raw.size() + raw.size() / 100 + 600, '\0');  // the bound of its manual
  auto size = static_cast<unsigned int>(zip.size());
  const int status = BZ2_bzBuffToBuffCompress(zip.data(), &size, const_cast<char*>(raw.data()),
                                              static_cast<unsigned int>(raw.size()), level, 0, 0);
  TYCHO_CHECK(status == BZ_OK, "[compression] bzip2 failed with status {}", status);
  zip.resize(size);
  return zip;
}

std::string brotli_compress(int level, std::string_view raw) {
  size_t size = BrotliEncoderMaxCompressedSize(raw.size());
  std::string zip(size, '\0');
  TYCHO_CHECK(BrotliEncoderCompress(level, BROTLI_DEFAULT_WINDOW, BROTLI_MODE_GENERIC, raw.size(),
                                    reinterpret_cast<const uint8_t*>(raw.data()), &size,
                                    reinterpret_cast<uint8_t*>(zip.data())) == BROTLI_TRUE,
              "[compression] brotli failed");
  zip.resize(size);
  return zip;
}

}  // namespace

std::string compress_bytes(const Compression& compression, std::string_view raw) {
  TYCHO_CHECK(raw.size() <= UINT32_MAX, "[compression] a shard must be smaller than 4 GiB, got {} bytes",
              raw.size());
  switch (compression.kind) {
    case CompressionKind::kBrotli: return brotli_compress(compression.level, raw);
    case CompressionKind::kBzip2: return bzip2_compress(compression.level, raw);
    case CompressionKind::kGzip: return gzip_compress(compression.level, raw);
    case CompressionKind::kZstd: return zstd_compress(compression.level, raw);
    case CompressionKind::kSnappy: break;
  }
  std::string zip;
  snappy::Compress(raw.data(), raw.size(), &zip);
  return zip;
}

}  // namespace tycho
