// Buffers are read in order, so that a window is read once.
#include "trainer/data/sources/arrow/arrow_buffer.h"

#include <algorithm>
#include <optional>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/data/sources/sized_block.h"
#include "trainer/data/storage/lz4_frame.h"

namespace tycho {
namespace {

constexpr int64_t kWindowBytes = 256 << 10;
constexpr int64_t kMostRawBytes = int64_t{2} << 30;

std::optional<std::string> decompressed(ArrowCodec codec, std::string_view stored, size_t raw_bytes) {
  if (codec == ArrowCodec::kZstd) return decompress_sized(CompressionKind::kZstd, stored, raw_bytes);
  std::string raw;
  if (!decode_lz4_frame(stored, raw_bytes, raw) || raw.size() != raw_bytes) return std::nullopt;
  return raw;
}

}  // namespace

void ArrowBuffer::outside(int64_t at) const {
  fail(ExitCode::kUnusable, "[arrow] place {} is outside a buffer of {} bytes", at, num_bytes_);
}

void ArrowBuffer::decompress(ArrowCodec codec) {
  constexpr int64_t kStoredAsIs = -1, kSizeBytes = sizeof(int64_t);
  if (codec == ArrowCodec::kNone || num_bytes_ == 0) return;
  const auto raw_bytes = number<int64_t>(0);
  if (raw_bytes == kStoredAsIs) {
    offset_ += kSizeBytes;
    num_bytes_ -= kSizeBytes;
    window_.clear();
    return;
  }
  if (raw_bytes < 0 || raw_bytes > kMostRawBytes)
    fail(ExitCode::kUnusable, "[arrow] a compressed buffer has {} bytes; at most 2 GiB are read", raw_bytes);
  const std::string stored(at(kSizeBytes, num_bytes_ - kSizeBytes));
  std::optional<std::string> raw = decompressed(codec, stored, static_cast<size_t>(raw_bytes));
  if (!raw) fail(ExitCode::kUnusable, "[arrow] a buffer does not decompress to its {} bytes", raw_bytes);
  window_ = std::move(*raw);
  window_begin_ = 0;
  num_bytes_ = raw_bytes;
}

std::string_view ArrowBuffer::at(int64_t begin, int64_t count) {
  if (begin < 0 || count < 0 || begin > num_bytes_ || count > num_bytes_ - begin) outside(begin);
  if (begin < window_begin_ || begin + count > window_begin_ + std::ssize(window_)) {
    window_.resize(static_cast<size_t>(std::min(std::max(count, kWindowBytes), num_bytes_ - begin)));
    read_exactly(*path_, offset_ + begin, window_.data(), window_.size());
    window_begin_ = begin;
  }
  return std::string_view(window_).substr(static_cast<size_t>(begin - window_begin_),
                                          static_cast<size_t>(count));
}

}  // namespace tycho
