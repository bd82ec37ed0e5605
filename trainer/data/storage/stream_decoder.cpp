// One class for each library. After the end of a stream, all but brotli decode further bytes as a new stream;
// streams of brotli cannot follow one another.
#include "trainer/data/storage/stream_decoder.h"

#define ZSTD_STATIC_LINKING_ONLY  // names the parameter for output that stays where it is
#include <brotli/decode.h>
#include <bzlib.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cstdint>

#include "trainer/base/error.h"

namespace tycho {
namespace {

/// Size of pieces that fit into the 32-bit counts of zlib and bzip2.
constexpr size_t kMostAtOnce = 1 << 30;

unsigned int piece_of(size_t size) { return static_cast<unsigned int>(std::min(size, kMostAtOnce)); }

/// Removes from input and output the bytes that a call of a library used and made.
void advance(std::string_view& in, std::span<char>& out, size_t used, size_t made) {
  in.remove_prefix(used);
  out = out.subspan(made);
}

class ZstdDecoder final : public StreamDecoder {
 public:
  explicit ZstdDecoder(StreamDecoderOutput output)
      : stream_(ZSTD_createDStream()), is_whole_(output == StreamDecoderOutput::kWhole) {
    TYCHO_CHECK(stream_ != nullptr, "[compression] zstd has no memory");
    if (is_whole_) ZSTD_DCtx_setParameter(stream_, ZSTD_d_stableOutBuffer, 1);
  }
  ~ZstdDecoder() override { ZSTD_freeDStream(stream_); }
  ZstdDecoder(const ZstdDecoder&) = delete;
  bool decode(std::string_view& in, std::span<char>& out) override {
    ZSTD_inBuffer from = {in.data(), in.size(), 0};
    if (!is_whole_ || whole_.data() == nullptr) whole_ = out;
    const size_t begin = whole_.size() - out.size();
    ZSTD_outBuffer to = {whole_.data(), whole_.size(), begin};
    const size_t status = ZSTD_decompressStream(stream_, &to, &from);
    if (is_whole_ && ZSTD_getErrorCode(status) == ZSTD_error_dstSize_tooSmall) return false;
    if (ZSTD_getErrorCode(status) == ZSTD_error_frameParameter_windowTooLarge)
      fail(ExitCode::kUnusable, "{}", kWindowTooLong);
    if (ZSTD_isError(status)) fail(ExitCode::kUnusable, "{}", ZSTD_getErrorName(status));
    advance(in, out, from.pos, to.pos - begin);
    return status == 0;
  }

 private:
  ZSTD_DStream* stream_;
  bool is_whole_;
  std::span<char> whole_;  // the output of all calls; in pieces: of this one
};

class GzipDecoder final : public StreamDecoder {
 public:
  GzipDecoder() {
    constexpr int kGzipHeader = 15 + 16;
    TYCHO_CHECK(inflateInit2(&stream_, kGzipHeader) == Z_OK, "[compression] zlib has no memory");
  }
  ~GzipDecoder() override { inflateEnd(&stream_); }
  GzipDecoder(const GzipDecoder&) = delete;
  bool decode(std::string_view& in, std::span<char>& out) override {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    const uInt given = piece_of(in.size()), room = piece_of(out.size());
    stream_.avail_in = given, stream_.avail_out = room;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
      fail(ExitCode::kUnusable, "{}", stream_.msg != nullptr ? stream_.msg : "it is not gzip data");
    advance(in, out, given - stream_.avail_in, room - stream_.avail_out);
    if (status != Z_STREAM_END) return false;
    inflateReset(&stream_);
    return true;
  }

 private:
  z_stream stream_ = {};
};

class Bzip2Decoder final : public StreamDecoder {
 public:
  Bzip2Decoder() { open(); }
  ~Bzip2Decoder() override { BZ2_bzDecompressEnd(&stream_); }
  Bzip2Decoder(const Bzip2Decoder&) = delete;
  bool decode(std::string_view& in, std::span<char>& out) override {
    stream_.next_in = const_cast<char*>(in.data());
    stream_.next_out = out.data();
    const unsigned int given = piece_of(in.size()), room = piece_of(out.size());
    stream_.avail_in = given, stream_.avail_out = room;
    const int status = BZ2_bzDecompress(&stream_);
    if (status == BZ_DATA_ERROR_MAGIC) fail(ExitCode::kUnusable, "it is not bzip2 data");
    if (status != BZ_OK && status != BZ_STREAM_END) fail(ExitCode::kUnusable, "its checksum does not match");
    advance(in, out, given - stream_.avail_in, room - stream_.avail_out);
    if (status != BZ_STREAM_END) return false;
    BZ2_bzDecompressEnd(&stream_);
    open();
    return true;
  }

 private:
  void open() {
    stream_ = {};
    TYCHO_CHECK(BZ2_bzDecompressInit(&stream_, 0, 0) == BZ_OK, "[compression] bzip2 has no memory");
  }
  bz_stream stream_ = {};
};

class BrotliDecoder final : public StreamDecoder {
 public:
  BrotliDecoder() : state_(BrotliDecoderCreateInstance(nullptr, nullptr, nullptr)) {
    TYCHO_CHECK(state_ != nullptr, "[compression] brotli has no memory");
  }
  ~BrotliDecoder() override { BrotliDecoderDestroyInstance(state_); }
  BrotliDecoder(const BrotliDecoder&) = delete;
  bool decode(std::string_view& in, std::span<char>& out) override {
    if (ended_) fail(ExitCode::kUnusable, "there is data after its end");
    size_t left = in.size(), room = out.size();
    const auto* next_in = reinterpret_cast<const uint8_t*>(in.data());
    auto* next_out = reinterpret_cast<uint8_t*>(out.data());
    const auto status = BrotliDecoderDecompressStream(state_, &left, &next_in, &room, &next_out, nullptr);
    if (status == BROTLI_DECODER_RESULT_ERROR)
      fail(ExitCode::kUnusable, "{}", BrotliDecoderErrorString(BrotliDecoderGetErrorCode(state_)));
    advance(in, out, in.size() - left, out.size() - room);
    ended_ = status == BROTLI_DECODER_RESULT_SUCCESS;
    return ended_;
  }

 private:
  BrotliDecoderState* state_;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<StreamDecoder> make_stream_decoder(CompressionKind kind, StreamDecoderOutput output) {
  switch (kind) {
    case CompressionKind::kBrotli: return std::make_unique<BrotliDecoder>();
    case CompressionKind::kBzip2: return std::make_unique<Bzip2Decoder>();
    case CompressionKind::kGzip: return std::make_unique<GzipDecoder>();
    case CompressionKind::kZstd: return std::make_unique<ZstdDecoder>(output);
    case CompressionKind::kSnappy: break;
  }
  fail(ExitCode::kFailure, "[compression] snappy has no pieces");
}

}  // namespace tycho
