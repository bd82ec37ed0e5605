// Decompresses a stream in pieces.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "trainer/data/storage/compression.h"

namespace tycho {

/// Decompresses a stream. Owned by one thread. Works in bounded memory: the window of the format, at most 128
/// MiB.
class StreamDecoder {
 public:
  virtual ~StreamDecoder() = default;
  /// Takes bytes from the front of `in` and fills the front of `out`; both shrink by the bytes used. Returns
  /// true at the end of a stream (a member of gzip and bzip2, a frame of zstd), after which another may
  /// begin; false when more input or more room is needed. If neither span shrinks, the next output does not
  /// fit into `out`. Throws Error (kUnusable) with the library's words.
  virtual bool decode(std::string_view& in, std::span<char>& out) = 0;
};

/// Error text of decode for a zstd stream with a longer window, which is not damaged.
inline constexpr std::string_view kWindowTooLong =
    "expected a window of at most 128 MiB, got a longer one (zstd --long): compress it again without --long";

/// kWhole, for zstd: `out` is always the rest of one buffer for the whole output, so that zstd needs no
/// window and no copy.
enum class StreamDecoderOutput { kPieces, kWhole };

/// Makes a decoder of any kind but snappy, which cannot be decoded in pieces.
std::unique_ptr<StreamDecoder> make_stream_decoder(CompressionKind kind,
                                                   StreamDecoderOutput output = StreamDecoderOutput::kPieces);

}  // namespace tycho
