// One loop for all formats: reads and decodes the input in pieces, and counts the output.
#include "trainer/data/storage/decompress.h"

#include <snappy.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string_view>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/regular_file.h"
#include "trainer/data/storage/stream_decoder.h"

namespace tycho {
namespace {

constexpr size_t kPieceBytes = 256 << 10;
using Sink = std::function<void(std::string_view)>;

/// A compressed file being read, and its errors.
class ZipFile {
 public:
  explicit ZipFile(const std::string& path) : path_(path), descriptor_(open_regular_file(path)) {
    if (descriptor_ < 0)
      fail(ExitCode::kUnusable, "[mds] cannot read shard {}: {}", path, std::strerror(errno));
  }
  ~ZipFile() { ::close(descriptor_); }
  ZipFile(const ZipFile&) = delete;

  /// Reads up to `size` bytes. Returns 0 at the end.
  size_t read(char* data, size_t size) {
    while (true) {
      const ssize_t n = ::read(descriptor_, data, size);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(ExitCode::kUnusable, "[mds] cannot read shard {}: {}", path_, std::strerror(errno));
      num_read_ += n;
      return static_cast<size_t>(n);
    }
  }

  [[noreturn]] void damaged(std::string_view why, size_t unread = 0) const {
    fail(ExitCode::kUnusable, "[mds] {} is damaged near byte {}: {}; copy the shard again", path_,
         num_read_ - static_cast<int64_t>(unread), why);
  }
  [[noreturn]] void refuse(std::string_view why) const {
    fail(ExitCode::kUnusable, "[mds] {}: {}", path_, why);
  }
  [[noreturn]] void cut_short() const {
    fail(ExitCode::kUnusable, "[mds] {} ends in the middle of its data, after {} bytes; copy the shard again",
         path_, num_read_);
  }
  void check_size(int64_t given, int64_t wanted) const {
    if (given > wanted)
      fail(ExitCode::kUnusable,
           "[mds] {} gives more than the {} bytes that index.json says; copy the shard again", path_, wanted);
    if (given < wanted)
      fail(ExitCode::kUnusable,
           "[mds] {} gives {} bytes, index.json says {}; copy the shard again or write the data again", path_,
           given, wanted);
  }

 private:
  std::string path_;
  int descriptor_;
  int64_t num_read_ = 0;
};

/// Decodes a stream. `room_after(made)` returns memory for the output after the first `made` bytes; `take`
/// receives that memory when it is filled.
template <class RoomAfter, class Take>
void decode_stream(ZipFile& file, StreamDecoder& decoder, int64_t raw_bytes, RoomAfter room_after,
                   Take take) {
  std::string input(kPieceBytes, '\0');
  std::string_view in;
  int64_t made = 0;
  bool ended = false;
  while (true) {
    if (in.empty()) in = {input.data(), file.read(input.data(), input.size())};
    if (in.empty() && ended) break;
    const bool last_input = in.empty();
    const std::span<char> given = room_after(made);
    std::span<char> room = given;
    const size_t before = in.size();
    try {
      ended = decoder.decode(in, room);
    } catch (const Error& error) {
      if (error.what() == kWindowTooLong) file.refuse(error.what());
      file.damaged(error.what(), in.size());
    }
    const size_t num_made = given.size() - room.size();
    made += static_cast<int64_t>(num_made);
    if (made > raw_bytes) file.check_size(made, raw_bytes);
    take(std::string_view(given.data(), num_made));
    if (ended || num_made > 0 || in.size() < before) continue;
    if (last_input) file.cut_short();
    const bool had_all_room = made + std::ssize(given) == raw_bytes;
    if (had_all_room) file.check_size(raw_bytes + 1, raw_bytes);
    file.damaged("it cannot go on", before);
  }
  file.check_size(made, raw_bytes);
}

/// Decodes a snappy file in one piece: the format begins with its raw size, and has no checksum.
void decode_snappy(ZipFile& file, int64_t raw_bytes, const Sink& sink) {
  const auto most = static_cast<int64_t>(snappy::MaxCompressedLength(static_cast<size_t>(raw_bytes)));
  std::string zip;
  while (true) {
    const size_t begin = zip.size();
    zip.resize(begin + kPieceBytes);
    const size_t n = file.read(zip.data() + begin, kPieceBytes);
    zip.resize(begin + n);
    if (n == 0) break;
    if (std::ssize(zip) > most) file.check_size(raw_bytes + 1, raw_bytes);
  }
  size_t given = 0;
  if (!snappy::GetUncompressedLength(zip.data(), zip.size(), &given)) file.damaged("it is not snappy data");
  file.check_size(static_cast<int64_t>(given), raw_bytes);
  std::string raw(given, '\0');
  if (!snappy::RawUncompress(zip.data(), zip.size(), raw.data())) file.damaged("it is not snappy data");
  sink(raw);
}

/// Decodes zstd straight into `raw`, without zstd's window and the copy out of it.
void decode_zstd_into(ZipFile& file, std::span<char> raw, const std::function<void()>& after_each) {
  const std::unique_ptr<StreamDecoder> decoder =
      make_stream_decoder(CompressionKind::kZstd, StreamDecoderOutput::kWhole);
  decode_stream(
      file, *decoder, std::ssize(raw), [&](int64_t made) { return raw.subspan(static_cast<size_t>(made)); },
      [&](std::string_view) { after_each(); });
}

}  // namespace

void decompress_into(const std::string& zip_path, CompressionKind kind, std::span<char> raw,
                     const std::stop_token& stop) {
  const auto check_stop = [&] {
    if (stop.stop_requested())
      fail(ExitCode::kTerminated, "[mds] stopped while {} was decompressed", zip_path);
  };
  if (kind == CompressionKind::kZstd) {
    ZipFile file(zip_path);
    return decode_zstd_into(file, raw, check_stop);
  }
  char* end = raw.data();
  decompress(zip_path, kind, std::ssize(raw), [&](std::string_view piece) {
    check_stop();
    end = std::copy(piece.begin(), piece.end(), end);
  });
}

void decompress(const std::string& zip_path, CompressionKind kind, int64_t raw_bytes, const Sink& sink) {
  ZipFile file(zip_path);
  if (kind == CompressionKind::kSnappy) return decode_snappy(file, raw_bytes, sink);
  const std::unique_ptr<StreamDecoder> decoder = make_stream_decoder(kind);
  std::string output(kPieceBytes, '\0');
  decode_stream(
      file, *decoder, raw_bytes, [&](int64_t) { return std::span<char>(output); },
      [&](std::string_view piece) {
        if (!piece.empty()) sink(piece);
      });
}

}  // namespace tycho
