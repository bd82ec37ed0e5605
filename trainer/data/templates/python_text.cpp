// Printing follows CPython's unicode_repr and float_repr_style "short".
#include "trainer/data/templates/python_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "trainer/base/text/utf8.h"

namespace tycho::jinja {
namespace {

bool is_printable(uint32_t code) {
  if (code < 0x80) return code >= 0x20 && code < 0x7F;
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return category != UTF8PROC_CATEGORY_CN && category < UTF8PROC_CATEGORY_ZS;
}

std::string python_quoted(std::string_view text) {
  const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0; at < text.size();) {
    uint32_t code = 0;
    const size_t length = decode_utf8(text.data() + at, text.size() - at, code);
    if (code == static_cast<uint32_t>(quote) || code == '\\') {
      out += '\\';
      out += static_cast<char>(code);
    } else if (code == '\n' || code == '\r' || code == '\t') {
      out += code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t";
    } else if (is_printable(code)) {
      out += text.substr(at, length);
    } else {
      out += code < 0x100     ? fmt::format("\\x{:02x}", code)
             : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                              : fmt::format("\\U{:08x}", code);
    }
    at += length;
  }
  return out + quote;
}

std::string represented_list(const List& list, Rendering& rendering) {
  if (list.kind == ListKind::kView || list.kind == ListKind::kOnce)
    rendering.wrong("a generator cannot be printed: add |list");
  std::string out = list.kind == ListKind::kTuple ? "(" : "[";
  for (size_t i = 0; i < list.items.size(); ++i)
    out += (i == 0 ? "" : ", ") + represented(list.items[i], rendering);
  if (list.kind == ListKind::kTuple) return out + (list.items.size() == 1 ? ",)" : ")");
  return out + "]";
}

template <class IsCut>
std::string_view cut_sides(std::string_view text, Sides sides, const IsCut& is_cut) {
  size_t first = text.size(), end = 0;
  for (size_t at = 0; at < text.size();) {
    uint32_t code = 0;
    const size_t length = decode_utf8(text.data() + at, text.size() - at, code);
    if (!is_cut(code, text.substr(at, length))) {
      first = std::min(first, at);
      end = at + length;
    }
    at += length;
  }
  if (sides == Sides::kLeft) end = text.size();
  if (sides == Sides::kRight) first = 0;
  return first < end ? text.substr(first, end - first) : std::string_view();
}

}  // namespace

bool is_space(uint32_t code) {
  return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

std::string_view stripped(std::string_view text, Sides sides) {
  return cut_sides(text, sides, [](uint32_t code, std::string_view) { return is_space(code); });
}

std::string_view stripped_of(std::string_view text, std::string_view chars, Sides sides) {
  // In valid text, a UTF-8 character is found only where a character begins.
  return cut_sides(text, sides,
                   [&](uint32_t, std::string_view one) { return chars.find(one) != chars.npos; });
}

std::vector<std::string_view> characters_of(std::string_view text, Rendering& rendering) {
  rendering.charge(std::ssize(text));
  std::vector<std::string_view> characters;
  for (size_t at = 0; at < text.size();) {
    uint32_t code = 0;
    const size_t length = decode_utf8(text.data() + at, text.size() - at, code);
    characters.push_back(text.substr(at, length));
    at += length;
  }
  return characters;
}

std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  std::array<char, 400> buffer;
  const double size = std::abs(number);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific)
                       .ptr;
  std::string text(buffer.data(), end);
  if (plain && text.find('.') == text.npos) text += ".0";
  return text;
}

std::string printed(const Value& value, Rendering& rendering) {
  if (value.is_text()) return value.text();
  if (value.is<Undefined>()) return "";
  return represented(value, rendering);
}

std::string represented(const Value& value, Rendering& rendering) {
  rendering.charge(8);
  if (value.is<None>()) return "None";
  if (value.is<bool>()) return value.as<bool>() ? "True" : "False";
  if (value.is<int64_t>()) return std::to_string(value.as<int64_t>());
  if (value.is<double>()) return float_text(value.as<double>());
  if (value.is<ListPtr>()) return represented_list(value.list(), rendering);
  if (value.is<Undefined>()) return "Undefined";
  if (value.is_text()) {
    rendering.charge(4 * std::ssize(value.text()));
    return python_quoted(value.text());
  }
  if (!value.is<DictPtr>()) rendering.wrong("a {} cannot be printed", type_of(value));
  std::string out = "{";
  for (const auto& [key, member] : value.dict().members)
    out += (out.size() == 1 ? "" : ", ") + python_quoted(key) + ": " + represented(member, rendering);
  return out + "}";
}

std::string in_case(std::string_view text, Case wanted, Rendering& rendering) {
  rendering.charge(std::ssize(text));
  std::string out(text);
  bool begins = true;
  for (char& c : out) {
    if (static_cast<unsigned char>(c) >= 0x80)
      rendering.wrong("upper and lower case are not supported for characters that are not ASCII");
    const bool is_lower = c >= 'a' && c <= 'z', is_upper = c >= 'A' && c <= 'Z';
    const bool raise = wanted == Case::kUpper || (wanted != Case::kLower && begins);
    if (is_lower && raise) c = static_cast<char>(c - 'a' + 'A');
    if (is_upper && !raise) c = static_cast<char>(c - 'A' + 'a');
    begins = wanted == Case::kTitle && !is_lower && !is_upper;
  }
  return out;
}

std::string replaced(std::string_view text, std::string_view old, std::string_view by, int64_t most,
                     Rendering& rendering) {
  rendering.charge(std::ssize(text));
  std::string out;
  const auto add = [&](std::string_view part) {
    rendering.charge(std::ssize(part));
    out += part;
  };
  if (old.empty()) {
    // Python replaces the empty text before every character and after the last one.
    for (const std::string_view character : characters_of(text, rendering)) {
      if (most != 0) add(by);
      if (most > 0) --most;
      add(character);
    }
    if (most != 0) add(by);
    return out;
  }
  while (most != 0) {
    const size_t at = text.find(old);
    if (at == text.npos) break;
    add(text.substr(0, at));
    add(by);
    text.remove_prefix(at + old.size());
    if (most > 0) --most;
  }
  add(text);
  return out;
}

std::vector<std::string_view> lines_of(std::string_view text, Rendering& rendering) {
  rendering.charge(std::ssize(text));
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    uint32_t code = 0;
    size_t length = decode_utf8(text.data() + at, text.size() - at, code);
    const bool ends = (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
                      code == 0x2028 || code == 0x2029;
    if (code == '\r' && text.substr(at + 1).starts_with('\n')) ++length;
    if (ends) lines.push_back(text.substr(begin, at - begin));
    at += length;
    if (ends) begin = at;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

}  // namespace tycho::jinja
