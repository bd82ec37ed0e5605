// Looks at code points, since a byte of a control may be part of a letter.
#include "trainer/metrics/control_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "trainer/base/text/terminal_controls.h"
#include "trainer/base/text/utf8.h"

namespace tycho {
namespace {

bool is_plain(char c) { return c == '\n' || c == '\t' || (c >= ' ' && c < '\x7f'); }

/// Returns the length in bytes of a character from its first byte.
size_t length_by(char first) {
  const auto byte = static_cast<uint8_t>(first);
  return byte < 0xC2 || byte > 0xF4 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// Returns where an incomplete character or line end at the end of the text begins; text.size() when there is
/// none.
size_t end_of_whole(std::string_view text) {
  if (text.ends_with('\r')) return text.size() - 1;
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const char c = text[text.size() - back];
    if ((static_cast<uint8_t>(c) & 0xC0) == 0x80) continue;
    return length_by(c) > back ? text.size() - back : text.size();
  }
  return text.size();
}

void put(std::string& out, std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t plain = static_cast<size_t>(
        std::find_if_not(text.begin() + static_cast<ptrdiff_t>(at), text.end(), is_plain) - text.begin());
    out.append(text, at, plain - at);
    at = plain;
    if (at == text.size()) return;
    uint32_t code = 0;
    const size_t length = decode_utf8(text.data() + at, text.size() - at, code);
    // Terminals that do not expect UTF-8 take the single bytes 80 to 9F as controls.
    if (code == 0xFFFD && length == 1) code = static_cast<uint8_t>(text[at]);
    const bool ends_line = code == '\r' && at + 1 < text.size() && text[at + 1] == '\n';
    if (is_terminal_control(code) && !ends_line)
      out += fmt::format("\\u{:04x}", code);
    else
      out.append(text, at, length);
    at += length;
  }
}

}  // namespace

std::string ControlFilter::add(std::string_view text) {
  if (rest_.empty() && std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  const std::string all = rest_ + std::string(text);
  const size_t end = end_of_whole(all);
  rest_ = all.substr(end);
  std::string out;
  put(out, std::string_view(all).substr(0, end));
  return out;
}

std::string ControlFilter::finish() {
  std::string out;
  put(out, rest_);
  rest_.clear();
  return out;
}

}  // namespace tycho
