// Three bytes are four digits.
#include "trainer/base/text/base64.h"

#include <cstdint>

namespace tycho {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string base64(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t k = 0; k < 3; ++k)
      three = three << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) text += i + k > bytes.size() ? '=' : kDigits[three >> (18 - 6 * k) & 63];
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t three = 0;
    for (size_t k = 0; k < 4; ++k) {
      const size_t digit = i + k >= text.size() - padding ? 0 : kDigits.find(text[i + k]);
      if (digit == std::string_view::npos) return std::nullopt;
      three = three << 6 | static_cast<uint32_t>(digit);
    }
    for (const int shift : {16, 8, 0}) bytes += static_cast<char>(three >> shift & 255);
  }
  return bytes.substr(0, bytes.size() - padding);
}

}  // namespace tycho
