// Holds back the bytes of a character that is not complete, three at most.
#include "trainer/data/tokenizer/decode_stream.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "trainer/base/text/utf8.h"

namespace tycho {
namespace {

/// Returns the number of bytes at the start that begin some valid character, at least one, and the number of
/// bytes of that character.
std::pair<size_t, size_t> partial_character(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t first = at(0);
  const size_t whole = first < 0xC2 || first > 0xF4 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  size_t count = 1;
  if (whole > 1 && bytes.size() > 1) {
    const uint8_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (at(1) < low || at(1) > high) return {1, whole};
    for (count = 2; count < whole && count < bytes.size() && (at(count) & 0xC0) == 0x80;) ++count;
  }
  return {count, whole};
}

}  // namespace

std::string DecodeStream::add(int32_t id) {
  if (options_.skip_special && tokenizer_.is_special(id)) return "";
  held_ += first_ ? tokenizer_.first_token_bytes(id) : tokenizer_.token_bytes(id);
  first_ = false;
  return take_valid(false);
}

std::string DecodeStream::finish() { return take_valid(true); }

std::string DecodeStream::take_valid(bool at_end) {
  std::string out;
  size_t position = 0;
  while (position < held_.size()) {
    const std::string_view rest = std::string_view(held_).substr(position);
    uint32_t code;
    const size_t length = decode_utf8(rest.data(), rest.size(), code);
    if (code != 0xFFFD || length > 1) {
      out += rest.substr(0, length);
      position += length;
      continue;
    }
    const auto [count, whole] = partial_character(rest);
    if (!at_end && count == rest.size() && count < whole) break;
    out += "\uFFFD";
    position += count;
  }
  held_.erase(0, position);
  return out;
}

}  // namespace tycho
