// Takes a compressed stream apart, piece by piece.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "trainer/data/compression/compression.h"

namespace tycho {

/// Owned by one thread. Works in bounded memory: the window of the format, at most 128 MiB.
class StreamDecoder {
 public:
  virtual ~StreamDecoder() = default;
  /// Takes bytes from the front of `in` and fills the front of `out`; both shrink by what was used. True at
  /// the end of a stream (a member of gzip and bzip2, a frame of zstd), after which a further one may begin;
  /// false when it wants more input or more room. If neither moves, what comes next does not fit into
  /// `out`. Throws Error (kUnusable) with the library's words.
  virtual bool decode(std::string_view& in, std::span<char>& out) = 0;
};

/// Words of decode for a zstd stream with a longer window: it is not damaged.
inline constexpr std::string_view kWindowTooLong =
    "expected a window of at most 128 MiB, got a longer one (zstd --long): compress it again without --long";

/// kWhole, for zstd: `out` is always the rest of one piece of memory that all of the output goes to, which
/// spares it a window and a copy.
enum class StreamDecoderOutput { kPieces, kWhole };

/// For every kind but snappy, which has no pieces.
std::unique_ptr<StreamDecoder> make_stream_decoder(CompressionKind kind,
                                                   StreamDecoderOutput output = StreamDecoderOutput::kPieces);

}  // namespace tycho
