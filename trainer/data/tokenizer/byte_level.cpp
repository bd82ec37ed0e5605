// Bytes that Latin-1 cannot print are given the code points from U+0100 on, in order.
#include "trainer/data/tokenizer/byte_level.h"

#include <array>

namespace tycho {
namespace {

constexpr uint32_t kCodes = 0x144;  // one past the largest code point in use

bool printable(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Tables {
  std::array<uint16_t, 256> code_of_byte;
  std::array<int16_t, kCodes> byte_of_code;
  Tables() {
    byte_of_code.fill(-1);
    uint16_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const uint16_t code = printable(byte) ? static_cast<uint16_t>(byte) : next++;
      code_of_byte[byte] = code;
      byte_of_code[code] = static_cast<int16_t>(byte);
    }
  }
};

const Tables& tables() {
  static const Tables built;
  return built;
}

}  // namespace

uint32_t byte_level_code(uint8_t byte) { return tables().code_of_byte[byte]; }

std::string to_byte_level(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const uint32_t code = byte_level_code(static_cast<uint8_t>(c));
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else {
      text += static_cast<char>(0xC0 | code >> 6);
      text += static_cast<char>(0x80 | (code & 0x3F));
    }
  }
  return text;
}

std::optional<std::string> from_byte_level(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    uint32_t code = static_cast<uint8_t>(text[i]);
    if (code >= 0x80) {
      if ((code & 0xE0) != 0xC0 || i + 1 == text.size()) return std::nullopt;
      code = (code & 0x1F) << 6 | (static_cast<uint8_t>(text[++i]) & 0x3F);
    }
    if (code >= kCodes || tables().byte_of_code[code] < 0) return std::nullopt;
    bytes += static_cast<char>(tables().byte_of_code[code]);
  }
  return bytes;
}

}  // namespace tycho
