// Escapes like CPython's json module: ASCII control characters, quotes and backslashes.
#include "trainer/data/templates/value_json.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/text/utf8.h"
#include "trainer/data/templates/python_text.h"

namespace tycho::jinja {
namespace {

std::string json_quoted(std::string_view text, bool ensure_ascii) {
  constexpr std::string_view kEscaped = "\"\\\n\r\t\b\f", kLetters = "\"\\nrtbf";
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    uint32_t code = 0;
    const size_t length = decode_utf8(text.data() + at, text.size() - at, code);
    const size_t which = code < 0x80 ? kEscaped.find(static_cast<char>(code)) : kEscaped.npos;
    if (which != kEscaped.npos) {
      out += {'\\', kLetters[which]};
    } else if (code < 0x20 || (ensure_ascii && code >= 0x7F && code < 0x10000)) {
      out += fmt::format("\\u{:04x}", code);
    } else if (ensure_ascii && code >= 0x10000) {
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10), 0xDC00 + (code & 0x3FF));
    } else {
      out += text.substr(at, length);
    }
    at += length;
  }
  return out + '"';
}

std::string json_real(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
  return float_text(number);
}

class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, Rendering& rendering) : style_(style), rendering_(rendering) {}

  std::string take() { return std::move(out_); }

  void write(const Value& value) {
    rendering_.charge(8);
    if (value.is_text()) {
      text(value.text());
    } else if (value.is<None>()) {
      out_ += "null";
    } else if (value.is<bool>()) {
      out_ += value.as<bool>() ? "true" : "false";
    } else if (value.is<int64_t>()) {
      out_ += std::to_string(value.as<int64_t>());
    } else if (value.is<double>()) {
      out_ += json_real(value.as<double>());
    } else if (value.is<DictPtr>()) {
      members(value.dict());
    } else if (value.is<ListPtr>() && value.list().kind != ListKind::kOnce &&
               value.list().kind != ListKind::kView) {
      items(value.list());
    } else {
      rendering_.wrong("{} cannot be written as JSON", type_of(value));
    }
  }

 private:
  void text(std::string_view text) {
    rendering_.charge(2 * std::ssize(text));
    out_ += json_quoted(text, style_.ensure_ascii);
  }

  void new_line() {
    if (!style_.indent) return;
    out_ += '\n';
    rendering_.charge(depth_ * std::ssize(*style_.indent));
    for (int i = 0; i < depth_; ++i) out_ += *style_.indent;
  }

  void items(const List& list) {
    open('[');
    for (const Value& item : list.items) {
      if (&item != list.items.data()) out_ += style_.item_separator;
      new_line();
      write(item);
    }
    close(']', list.items.empty());
  }

  void members(const Dict& dict) {
    auto sorted = dict.members;
    if (style_.sort_keys)
      std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    open('{');
    for (const auto& member : sorted) {
      if (&member != sorted.data()) out_ += style_.item_separator;
      new_line();
      text(member.first);
      out_ += style_.key_separator;
      write(member.second);
    }
    close('}', sorted.empty());
  }

  void open(char bracket) {
    out_ += bracket;
    ++depth_;
  }

  void close(char bracket, bool is_empty) {
    --depth_;
    if (!is_empty) new_line();
    out_ += bracket;
  }

  const JsonStyle& style_;
  Rendering& rendering_;
  std::string out_;
  int depth_ = 0;
};

}  // namespace

std::string json_text(const Value& value, const JsonStyle& style, Rendering& rendering) {
  JsonWriter writer(style, rendering);
  writer.write(value);
  return writer.take();
}

}  // namespace tycho::jinja
