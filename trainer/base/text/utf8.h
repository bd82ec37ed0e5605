// Reading UTF-8 that may be broken.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tycho {

/// Decodes the UTF-8 character at `s`, of which `left` >= 1 bytes can be read. Returns its length and sets
/// its code point. A byte that starts no valid character has length 1 and code point U+FFFD.
inline size_t decode_utf8(const char* s, size_t left, uint32_t& code) {
  const auto byte = [s](size_t i) { return static_cast<uint8_t>(s[i]); };
  const auto follows = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const uint8_t first = byte(0);
  code = first;
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0 && left >= 2 && follows(1)) {
    code = (first & 0x1Fu) << 6 | (byte(1) & 0x3Fu);
    return 2;
  }
  if (first >= 0xE0 && first < 0xF0 && left >= 3 && follows(1) && follows(2)) {
    code = (first & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
    if (code >= 0x800 && (code < 0xD800 || code >= 0xE000)) return 3;
  }
  if (first >= 0xF0 && first < 0xF5 && left >= 4 && follows(1) && follows(2) && follows(3)) {
    code = (first & 0x07u) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3Fu);
    if (code >= 0x10000 && code < 0x110000) return 4;
  }
  code = 0xFFFD;
  return 1;
}

/// Returns the offset of the first byte that is zero or belongs to no valid character; npos when there is
/// none.
inline size_t find_not_text(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    // Eight bytes at a time while they are ASCII and none is zero.
    uint64_t word = 0;
    if (text.size() - at >= sizeof word) {
      std::memcpy(&word, text.data() + at, sizeof word);
      constexpr uint64_t kOnes = 0x0101010101010101, kHigh = 0x8080808080808080;
      if (((word | (word - kOnes)) & kHigh) == 0) {
        at += sizeof word;
        continue;
      }
    }
    uint32_t code = 0;
    const size_t length = decode_utf8(text.data() + at, text.size() - at, code);
    if (code == 0 || (code == 0xFFFD && length == 1)) return at;
    at += length;
  }
  return std::string_view::npos;
}

}  // namespace tycho
