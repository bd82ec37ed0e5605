// A header, blocks that begin with their size, and an empty block.
#include "trainer/data/storage/lz4_frame.h"

#include <cstdint>
#include <cstring>
#include <optional>

#include "trainer/data/storage/lz4_block.h"

namespace tycho {
namespace {

constexpr uint32_t kFrameMagic = 0x184D2204, kStoredAsIs = uint32_t{1} << 31;
constexpr size_t kChecksumBytes = 4;

enum FrameFlag : uint8_t { kDictionaryId = 1, kContentChecksum = 4, kContentSize = 8, kBlockChecksum = 16 };

std::optional<uint32_t> take_word_of(std::string_view& bytes) {
  uint32_t word;
  if (bytes.size() < sizeof word) return std::nullopt;
  std::memcpy(&word, bytes.data(), sizeof word);
  bytes.remove_prefix(sizeof word);
  return word;
}

}  // namespace

bool decode_lz4_frame(std::string_view frame, size_t most_bytes, std::string& out) {
  const size_t begin = out.size();
  if (take_word_of(frame) != kFrameMagic || frame.size() < 3) return false;
  const auto flags = static_cast<uint8_t>(frame[0]);
  // Flags, sizes of blocks, the size of the content, a checksum.
  const size_t header = 3 + ((flags & kContentSize) != 0 ? 8 : 0);
  if (flags >> 6 != 1 || (flags & kDictionaryId) != 0 || frame.size() < header) return false;
  frame.remove_prefix(header);
  while (const auto size = take_word_of(frame)) {
    if (*size == 0) return frame.size() == ((flags & kContentChecksum) != 0 ? kChecksumBytes : 0);
    const size_t stored = *size & ~kStoredAsIs, made = out.size() - begin;
    if (stored > frame.size()) return false;
    const std::string_view block = frame.substr(0, stored);
    frame.remove_prefix(stored);
    if ((*size & kStoredAsIs) != 0) {
      if (stored > most_bytes - made) return false;
      out += block;
    } else if (!decode_lz4_block(block, most_bytes - made, out, made)) {
      return false;
    }
    if ((flags & kBlockChecksum) != 0 && !take_word_of(frame)) return false;
  }
  return false;
}

}  // namespace tycho
