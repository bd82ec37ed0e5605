// Formatting with fmt, and walking UTF-8 by hand.
#include "trainer/metrics/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "trainer/base/environment.h"
#include "trainer/base/text/terminal_controls.h"
#include "trainer/base/text/utf8.h"

namespace tycho {
namespace {

/// Returns "5.8e-04" as "5.8e-4".
std::string without_exponent_padding(std::string text) {
  const size_t e = text.find('e');
  if (e == std::string::npos) return text;
  size_t digits = e + 1;
  if (text[digits] == '-' || text[digits] == '+') ++digits;
  while (digits + 1 < text.size() && text[digits] == '0') text.erase(digits, 1);
  if (text[e + 1] == '+') text.erase(e + 1, 1);
  return text;
}

/// Returns the bytes of the UTF-8 sequence at the front of `text`; 0 when it is broken.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t length = byte(0) < 0x80   ? 1
                        : byte(0) < 0xc2 ? 0
                        : byte(0) < 0xe0 ? 2
                        : byte(0) < 0xf0 ? 3
                        : byte(0) < 0xf5 ? 4
                                         : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

std::string clock_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "n/a";
  const int64_t whole = std::llround(seconds);
  const int64_t days = whole / 86400, hours = whole / 3600 % 24, minutes = whole / 60 % 60;
  if (days > 0) return fmt::format("{}d {:02}:{:02}:{:02}", days, hours, minutes, whole % 60);
  return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
}

std::string exact_text(double value) { return std::isnan(value) ? "nan" : fmt::format("{}", value); }

std::string flops_text(double flops) {
  const char* prefix = " kMGTPEZY";
  while (flops >= 999.5 && prefix[1] != '\0') {
    flops /= 1000;
    ++prefix;
  }
  const std::string number = fmt::format("{:.{}f} ", flops, flops < 9.995 ? 2 : flops < 99.95 ? 1 : 0);
  return *prefix == ' ' ? number + "FLOP" : number + *prefix + "FLOP";
}

std::string metric_text(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value)) return exact_text(value);
  if (size != 0 && (size < 1e-3 || size >= 1e6))
    return without_exponent_padding(fmt::format("{:.2e}", value));
  const int digits_before = size < 1 ? 0 : static_cast<int>(std::log10(size)) + 1;
  return fmt::format("{:.{}f}", value, std::max(0, 4 - digits_before));
}

std::string short_text(double value) {
  if (!std::isfinite(value)) return exact_text(value);
  if (value == 0 || !(std::abs(value) < 1e-2)) return without_exponent_padding(fmt::format("{:.3g}", value));
  const std::string exact = fmt::format("{:.2e}", value);
  std::string text = exact;
  for (int decimals = 1; decimals >= 0; --decimals) {
    const std::string shorter = fmt::format("{:.{}e}", value, decimals);
    // Not std::stod, which throws above the largest double: "1.8e+308".
    if (std::strtod(shorter.c_str(), nullptr) == std::strtod(exact.c_str(), nullptr)) text = shorter;
  }
  return without_exponent_padding(text);
}

std::string percent_text(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string printable(std::string_view text, bool unicode) {
  std::string out;
  while (!text.empty()) {
    uint32_t code = 0;
    const size_t length = decode_utf8(text.data(), text.size(), code);
    const bool is_broken = code == 0xFFFD && length == 1;
    if (code == '\n' || code == '\t') {
      out += ' ';
    } else if (is_broken || is_terminal_control(code) || (length > 1 && !unicode)) {
      out += '?';
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string quoted_value(std::string_view text) {
  if (!text.empty() && text.find_first_of(" =\"\\") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

int display_width(std::string_view utf8) {
  return static_cast<int>(std::count_if(
      utf8.begin(), utf8.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string cut_to_width(const std::string& text, int width, bool unicode) {
  if (display_width(text) <= width) return text;
  if (width <= 0) return "";
  size_t end = 0;
  for (int columns = 0; columns < width - 1; ++columns)
    end += sequence_length(std::string_view(text).substr(end));
  return text.substr(0, end) + (unicode ? "…" : "~");
}

std::vector<std::string> wrap_to_width(const std::string& text, int width) {
  std::vector<std::string> lines(1);
  int columns = 0;
  for (size_t begin = text.find_first_not_of(' '); begin != std::string::npos;) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    std::string word = text.substr(begin, end - begin);
    if (columns > 0 && columns + 1 + display_width(word) > width) lines.emplace_back(), columns = 0;
    for (; display_width(word) > width; lines.emplace_back()) {
      size_t bytes = 0;
      for (int column = 0; column < width; ++column)
        bytes += std::max<size_t>(1, sequence_length(std::string_view(word).substr(bytes)));
      lines.back() += word.substr(0, bytes);
      word.erase(0, bytes);
    }
    lines.back() += (columns > 0 ? " " : "") + word;
    columns = display_width(lines.back());
    begin = text.find_first_not_of(' ', end);
  }
  return lines;
}

bool locale_is_utf8() {
  std::string locale = first_environment_variable({"LC_ALL", "LC_CTYPE", "LANG"});
  std::transform(locale.begin(), locale.end(), locale.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
}

}  // namespace tycho
