// Cuts records into blocks, and puts them together again.
#include "trainer/loggers/wandb_blocks.h"

#include <zlib.h>

#include <algorithm>
#include <fstream>

#include "trainer/base/error.h"
#include "trainer/loggers/wire_message.h"

namespace tycho {
namespace {

constexpr size_t kBlockBytes = 32768, kFrameBytes = 7;
constexpr char kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4;
constexpr std::string_view kFileHeader("\x3aW&B\xe1\xbe\x00", kFrameBytes);
constexpr size_t kReadBytes = 1 << 20;

uint32_t checksum(char type, std::string_view bytes) {
  const uLong begun = ::crc32(0, reinterpret_cast<const Bytef*>(&type), 1);
  return static_cast<uint32_t>(
      ::crc32(begun, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

uint64_t number_at(std::string_view bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i)
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  return value;
}

}  // namespace

std::string WandbBlocks::header() {
  offset_ = kFileHeader.size();
  return std::string(kFileHeader);
}

std::string WandbBlocks::piece(std::string_view bytes, char type) {
  offset_ += kFrameBytes + bytes.size();
  return little_endian(checksum(type, bytes), 4) + little_endian(bytes.size(), 2) + type + std::string(bytes);
}

std::string WandbBlocks::record(std::string_view bytes) {
  std::string out;
  bool first = true;
  do {
    size_t room = kBlockBytes - offset_ % kBlockBytes;
    if (room < kFrameBytes) {
      out.append(room, '\0');
      offset_ += room;
      room = kBlockBytes;
    }
    const size_t size = std::min(bytes.size(), room - kFrameBytes);
    const bool last = size == bytes.size();
    out += piece(bytes.substr(0, size), first ? (last ? kFull : kFirst) : (last ? kLast : kMiddle));
    bytes.remove_prefix(size);
    first = false;
    if (last) return out;
  } while (true);
}

std::optional<WandbBlockRecord> read_wandb_record(std::string_view bytes, size_t at) {
  WandbBlockRecord record;
  size_t here = 0;  // in bytes
  if (at == 0) {
    if (!bytes.starts_with(kFileHeader)) return std::nullopt;
    here = kFileHeader.size();
  }
  while (true) {
    const size_t room = kBlockBytes - (at + here) % kBlockBytes;
    if (room < kFrameBytes) {
      here += room;
      continue;
    }
    if (here > bytes.size() || bytes.size() - here < kFrameBytes) return std::nullopt;
    const size_t size = number_at(bytes, here + 4, 2);
    const char type = bytes[here + 6];
    if (size > std::min(room, bytes.size() - here) - kFrameBytes || type < kFull || type > kLast)
      return std::nullopt;
    const std::string_view data = bytes.substr(here + kFrameBytes, size);
    if (number_at(bytes, here, 4) != checksum(type, data)) return std::nullopt;
    if (type == kFull || type == kFirst) record.bytes.clear();
    record.bytes += data;
    here += kFrameBytes + size;
    if (type == kFull || type == kLast) {
      record.end = at + here;
      return record;
    }
  }
}

std::optional<std::string> WandbBlockFile::next() {
  for (bool is_fresh = false;;) {
    if (auto record = read_wandb_record(std::string_view(bytes_).substr(consumed_), at_)) {
      consumed_ += record->end - at_;
      at_ = record->end;
      return std::move(record->bytes);
    }
    const bool grew = read_on();
    if (is_fresh && !grew) return std::nullopt;
    is_fresh = true;
  }
}

// Bytes that did not make a record are read again: it may have been half-written.
bool WandbBlockFile::read_on() {
  std::ifstream file(path_, std::ios::binary);
  if (!file) fail(ExitCode::kUnusable, "[wandb] cannot open {}", path_);
  const size_t had = bytes_.size() - consumed_;
  consumed_ = 0;
  bytes_.assign(had + kReadBytes, '\0');
  file.seekg(static_cast<std::streamoff>(at_));
  file.read(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
  bytes_.resize(static_cast<size_t>(file.gcount()));
  return bytes_.size() > had;
}

}  // namespace tycho
