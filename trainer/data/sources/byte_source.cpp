// Decompresses as a stream: only a block of input and a block of output are in memory, whatever the file's
// size.
#include "trainer/data/sources/byte_source.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/regular_file.h"
#include "trainer/data/storage/stream_decoder.h"

namespace tycho {
namespace {

constexpr size_t kBlockBytes = 256 << 10;
constexpr std::string_view kGzipMagic = "\x1f\x8b", kZstdMagic = "\x28\xb5\x2f\xfd";
constexpr int kGzipWithHeader = 15 + 16;  // zlib: the largest window, and gzip's header and trailer

[[noreturn]] void cut_short(const std::string& path, const char* kind, int64_t read) {
  fail(ExitCode::kUnusable,
       "[data] {} ends in the middle of its {} data, after {} bytes: copy or download it again", path, kind,
       read);
}

class PlainSource final : public ByteSource {
 public:
  explicit PlainSource(const std::string& path) : path_(path), fd_(open_regular_file(path)) {
    if (fd_ < 0) fail(ExitCode::kUnusable, "[data] cannot read {}: {}", path, std::strerror(errno));
  }
  ~PlainSource() override { ::close(fd_); }
  PlainSource(const PlainSource&) = delete;

  size_t read(char* data, size_t size) override {
    while (true) {
      const ssize_t n = ::read(fd_, data, size);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(ExitCode::kUnusable, "[data] cannot read {}: {}", path_, std::strerror(errno));
      read_ += n;
      return static_cast<size_t>(n);
    }
  }
  int64_t file_bytes() const override { return read_; }
  const std::string& path() const { return path_; }
  void rewind() {
    ::lseek(fd_, 0, SEEK_SET);
    read_ = 0;
  }

 private:
  std::string path_;
  int fd_;
  int64_t read_ = 0;
};

/// Decompresses gzip. Consecutive members are one text, as for gzip itself.
class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(std::unique_ptr<PlainSource> file) : file_(std::move(file)) {
    TYCHO_CHECK(inflateInit2(&stream_, kGzipWithHeader) == Z_OK, "[data] zlib has no memory");
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;

  size_t read(char* data, size_t size) override {
    stream_.next_out = reinterpret_cast<Bytef*>(data);
    stream_.avail_out = static_cast<uInt>(size);
    while (stream_.avail_out == size) {
      if (stream_.avail_in == 0 && !refill()) {
        if (inside_member_) cut_short(file_->path(), "gzip", file_->file_bytes());
        return 0;
      }
      if (!inside_member_ && skip_padding()) continue;
      inside_member_ = true;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status == Z_STREAM_END) {
        inflateReset(&stream_);
        inside_member_ = false;
        any_member_ = true;
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        fail(ExitCode::kUnusable, "[data] {} is damaged near byte {}: {}; copy or download it again",
             file_->path(), file_->file_bytes() - stream_.avail_in,
             stream_.msg != nullptr ? stream_.msg : "not gzip");
      }
    }
    return size - stream_.avail_out;
  }
  int64_t file_bytes() const override { return file_->file_bytes(); }

 private:
  bool refill() {
    stream_.avail_in = static_cast<uInt>(file_->read(input_.data(), input_.size()));
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    return stream_.avail_in > 0;
  }
  /// Skips a zero byte after a member, which pads tapes; gzip skips these too.
  bool skip_padding() {
    if (!any_member_ || *stream_.next_in != 0) return false;
    ++stream_.next_in;
    --stream_.avail_in;
    return true;
  }

  std::unique_ptr<PlainSource> file_;
  std::string input_ = std::string(kBlockBytes, '\0');
  z_stream stream_ = {};
  bool inside_member_ = false, any_member_ = false;
};

class ZstdSource final : public ByteSource {
 public:
  explicit ZstdSource(std::unique_ptr<PlainSource> file)
      : file_(std::move(file)), stream_(ZSTD_createDStream()) {
    TYCHO_CHECK(stream_ != nullptr, "[data] libzstd has no memory");
  }
  ~ZstdSource() override { ZSTD_freeDStream(stream_); }
  ZstdSource(const ZstdSource&) = delete;

  size_t read(char* data, size_t size) override {
    ZSTD_outBuffer out = {data, size, 0};
    while (out.pos == 0) {
      if (in_.pos == in_.size) {
        in_ = {input_.data(), file_->read(input_.data(), input_.size()), 0};
        if (in_.size == 0) {
          if (wanted_ != 0) cut_short(file_->path(), "Zstandard", file_->file_bytes());
          return 0;
        }
      }
      wanted_ = ZSTD_decompressStream(stream_, &out, &in_);
      if (ZSTD_getErrorCode(wanted_) == ZSTD_error_frameParameter_windowTooLarge)
        fail(ExitCode::kUnusable, "[data] {}: {}", file_->path(), kWindowTooLong);
      if (ZSTD_isError(wanted_)) {
        fail(ExitCode::kUnusable, "[data] {} is damaged near byte {}: {}; copy or download it again",
             file_->path(), file_->file_bytes() - static_cast<int64_t>(in_.size - in_.pos),
             ZSTD_getErrorName(wanted_));
      }
    }
    return out.pos;
  }
  int64_t file_bytes() const override { return file_->file_bytes(); }

 private:
  std::unique_ptr<PlainSource> file_;
  ZSTD_DStream* stream_;
  std::string input_ = std::string(kBlockBytes, '\0');
  ZSTD_inBuffer in_ = {nullptr, 0, 0};
  size_t wanted_ = 0;  // 0 at the end of a frame
};

}  // namespace

std::unique_ptr<ByteSource> open_bytes(const std::string& path) {
  auto file = std::make_unique<PlainSource>(path);
  char head[4];
  size_t filled = 0;
  for (size_t n = 1; n > 0 && filled < sizeof head; filled += n)
    n = file->read(head + filled, sizeof head - filled);
  file->rewind();
  const std::string_view start(head, filled);
  if (start.starts_with(kGzipMagic)) return std::make_unique<GzipSource>(std::move(file));
  if (start.starts_with(kZstdMagic)) return std::make_unique<ZstdSource>(std::move(file));
  if (uncompressed_name(path) != path) {
    fail(ExitCode::kUnusable,
         "[data] {} is not {} data, despite its name. Copy or download it again, or rename it", path,
         path.ends_with(".gz") ? "gzip" : "Zstandard");
  }
  return file;
}

std::string uncompressed_name(const std::string& path) {
  for (const std::string_view ending : {".gz", ".zst", ".zstd"})
    if (path.ends_with(ending)) return path.substr(0, path.size() - ending.size());
  return path;
}

std::string read_head(const std::string& path, size_t size) {
  const auto source = open_bytes(path);
  std::string head(size, '\0');
  size_t filled = 0;
  for (size_t n = 1; n > 0 && filled < size; filled += n)
    n = source->read(head.data() + filled, size - filled);
  head.resize(filled);
  return head;
}

}  // namespace tycho
