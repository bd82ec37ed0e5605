// A buffer of an Arrow file: read a window at a time, or decompressed in memory.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

namespace tycho {

/// Compression of the buffers of a batch.
enum class ArrowCodec { kNone, kLz4Frame, kZstd };

/// Owned by one thread. Throws Error (kUnusable) "[arrow] ..." for places outside the buffer.
class ArrowBuffer {
 public:
  ArrowBuffer() = default;
  /// The `num_bytes` at `offset` of the file.
  ArrowBuffer(std::shared_ptr<const std::string> path, int64_t offset, int64_t num_bytes)
      : path_(std::move(path)), offset_(offset), num_bytes_(num_bytes) {}

  int64_t num_bytes() const { return num_bytes_; }
  /// Decompresses the buffer into memory: its size, then its bytes. Throws Error above 2 GiB.
  void decompress(ArrowCodec codec);
  /// Returns `count` bytes, which are valid until the next call.
  std::string_view at(int64_t begin, int64_t count);
  /// Returns element `i` of an array.
  template <class T>
  T number(int64_t i) {
    T value;
    if (i < 0 || i >= num_bytes_ / static_cast<int64_t>(sizeof value)) outside(i);
    std::memcpy(&value, at(i * static_cast<int64_t>(sizeof value), sizeof value).data(), sizeof value);
    return value;
  }
  bool bit(int64_t i) { return number<uint8_t>(i / 8) >> (i % 8) & 1; }

 private:
  [[noreturn]] void outside(int64_t at) const;

  std::shared_ptr<const std::string> path_;
  int64_t offset_ = 0, num_bytes_ = 0;
  std::string window_;
  int64_t window_begin_ = 0;
};

}  // namespace tycho
