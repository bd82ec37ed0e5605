// One pass over the text; inside tags brackets are balanced, so that "}}" can close dicts.
#include "trainer/data/templates/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "trainer/base/text/utf8.h"
#include "trainer/data/templates/python_text.h"

namespace tycho::jinja {
namespace {

constexpr std::array<std::string_view, 6> kLongOperators = {"//", "**", "==", "!=", ">=", "<="};
constexpr std::string_view kOperators = "+-/*%~[](){}><=.:|,";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// Replaces line breaks by LF, and removes one at the end.
std::string normalized(std::string_view source) {
  std::string text;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
    } else if (!source.substr(i + 1).starts_with('\n')) {
      text += '\n';
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

void append_utf8(std::string& text, uint32_t code) {
  const auto byte = [](uint32_t bits) { return static_cast<char>(bits); };
  if (code < 0x80) {
    text += byte(code);
  } else if (code < 0x800) {
    text += {byte(0xC0 | code >> 6), byte(0x80 | (code & 0x3F))};
  } else if (code < 0x10000) {
    text += {byte(0xE0 | code >> 12), byte(0x80 | (code >> 6 & 0x3F)), byte(0x80 | (code & 0x3F))};
  } else {
    text += {byte(0xF0 | code >> 18), byte(0x80 | (code >> 12 & 0x3F)), byte(0x80 | (code >> 6 & 0x3F)),
             byte(0x80 | (code & 0x3F))};
  }
}

class Lexer {
 public:
  Lexer(std::string_view source, Rendering& rendering) : source_(source), rendering_(rendering) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      const size_t tag = find_tag();
      add_text(tag);
      if (tag == source_.size()) break;
      const char kind = source_[tag + 1];
      advance(2);
      if (has("-") || has("+")) advance(1);
      if (kind == '#') {
        skip_comment();
      } else {
        add_tag(kind);
      }
    }
    add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  bool has(std::string_view text) const { return source_.substr(at_).starts_with(text); }
  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), rendering_.line}); }
  void advance(size_t bytes) {
    const auto begin = source_.begin() + static_cast<int64_t>(at_);
    rendering_.line += static_cast<int>(std::count(begin, begin + static_cast<int64_t>(bytes), '\n'));
    at_ += bytes;
  }

  size_t find_tag() const {
    for (size_t at = source_.find('{', at_); at != source_.npos; at = source_.find('{', at + 1))
      if (at + 1 < source_.size() && std::string_view("{%#").find(source_[at + 1]) != std::string_view::npos)
        return at;
    return source_.size();
  }

  /// Adds the text before the tag at `end`, trimmed as the tag asks, and moves to `end`.
  void add_text(size_t end) {
    std::string_view text = source_.substr(at_, end - at_);
    const std::string_view tag = source_.substr(end, 3);
    if (tag.ends_with('-') && tag.size() == 3) {
      text = stripped(text, Sides::kRight);
    } else if (tag.size() >= 2 && tag[1] != '{' && !tag.ends_with('+')) {
      const size_t line = text.rfind('\n') + 1;  // 0 for none
      if ((line > 0 || begins_line_) && stripped(text.substr(line), Sides::kBoth).empty())
        text = text.substr(0, line);
    }
    if (!text.empty()) add(TokenKind::kText, std::string(text));
    begins_line_ = false;
    advance(end - at_);
  }

  /// Moves behind the end mark of a tag, which has `bytes`, and behind the white space that it trims.
  void close(size_t bytes, bool trims_all, bool trims_break) {
    advance(bytes);
    if (trims_all) {
      const std::string_view rest = source_.substr(at_);
      advance(rest.size() - stripped(rest, Sides::kLeft).size());
    } else if (trims_break && has("\n")) {
      advance(1);
    }
    begins_line_ = source_[at_ - 1] == '\n';
  }

  void skip_comment() {
    const size_t end = source_.find("#}", at_);
    if (end == source_.npos) rendering_.wrong("a comment is not closed: write #}}");
    const char sign = end > at_ ? source_[end - 1] : ' ';
    close(end + 2 - at_, sign == '-', sign != '+');
  }

  void add_tag(char kind) {
    const bool prints = kind == '{';
    add(prints ? TokenKind::kPrint : TokenKind::kBlock, "");
    const int line = rendering_.line;
    const std::string_view end = prints ? "}}" : "%}";
    while (true) {
      if (at_ >= source_.size()) {
        rendering_.line = line;
        rendering_.wrong("a tag is not closed: write {}", end);
      }
      if (open_.empty()) {
        const bool minus = has("-") && source_.substr(at_ + 1).starts_with(end),
                   plus = !prints && has("+") && source_.substr(at_ + 1).starts_with(end);
        if (minus || plus || has(end)) {
          add(prints ? TokenKind::kPrintEnd : TokenKind::kBlockEnd, "");
          return close(end.size() + (minus || plus), minus, !prints && !plus);
        }
      }
      add_token();
    }
  }

  void add_token() {
    uint32_t code = 0;
    const size_t length = decode_utf8(source_.data() + at_, source_.size() - at_, code);
    const char c = source_[at_];
    if (is_space(code)) return advance(length);
    if (is_digit(c)) return add_number();
    if (begins_name(c)) {
      size_t end = at_;
      while (end < source_.size() && (begins_name(source_[end]) || is_digit(source_[end]))) ++end;
      add(TokenKind::kName, std::string(source_.substr(at_, end - at_)));
      return advance(end - at_);
    }
    if (c == '\'' || c == '"') return add_string(c);
    for (const std::string_view op : kLongOperators)
      if (has(op)) {
        add(TokenKind::kOperator, std::string(op));
        return advance(2);
      }
    if (kOperators.find(c) == kOperators.npos)
      rendering_.wrong("unexpected '{}' in a tag", source_.substr(at_, length));
    balance(c);
    add(TokenKind::kOperator, std::string(1, c));
    advance(1);
  }

  void balance(char c) {
    constexpr std::string_view kOpen = "([{", kClose = ")]}";
    if (kOpen.find(c) != kOpen.npos) open_ += c;
    const size_t which = kClose.find(c);
    if (which == kClose.npos) return;
    if (open_.empty() || open_.back() != kOpen[which]) rendering_.wrong("unexpected '{}' in a tag", c);
    open_.pop_back();
  }

  /// Reads digits with at most a fraction and an exponent.
  void add_number() {
    const auto skip_digits = [&](size_t from) {
      while (from < source_.size() && is_digit(source_[from])) ++from;
      return from;
    };
    size_t end = skip_digits(at_);
    bool is_float = false;
    const auto digit_at = [&](size_t at) { return at < source_.size() && is_digit(source_[at]); };
    if (end < source_.size() && source_[end] == '.' && digit_at(end + 1)) {
      end = skip_digits(end + 1);
      is_float = true;
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      const size_t sign =
          end + 1 < source_.size() && std::string_view("+-").find(source_[end + 1]) != std::string_view::npos;
      if (digit_at(end + 1 + sign)) {
        end = skip_digits(end + 1 + sign);
        is_float = true;
      }
    }
    const std::string text(source_.substr(at_, end - at_));
    const bool continues = end < source_.size() && begins_name(source_[end]);
    if (continues || (!is_float && text.size() > 1 && text[0] == '0'))
      rendering_.wrong("the number {} is not supported: expected decimal digits",
                       source_.substr(at_, end + continues - at_));
    add(is_float ? TokenKind::kFloat : TokenKind::kInteger, text);
    advance(end - at_);
  }

  void add_string(char quote) {
    std::string value;
    size_t at = at_ + 1;
    while (at < source_.size() && source_[at] != quote) {
      if (source_[at] != '\\') {
        value += source_[at++];
      } else {
        at = add_escape(at + 1, value);
      }
    }
    if (at >= source_.size()) rendering_.wrong("a text is not closed: write {}", quote);
    add(TokenKind::kString, std::move(value));
    advance(at + 1 - at_);
  }

  /// Adds the character of the escape whose letter is at `at`, as Python does. Returns the position after the
  /// escape.
  size_t add_escape(size_t at, std::string& value) const {
    constexpr std::string_view kLetters = "abfnrtv\\'\"", kMeanings = "\a\b\f\n\r\t\v\\'\"";
    if (at >= source_.size()) return at;
    const char c = source_[at];
    if (const size_t which = kLetters.find(c); which != kLetters.npos) {
      value += kMeanings[which];
      return at + 1;
    }
    if (c == '\n') return at + 1;
    if (c == 'x' || c == 'u' || c == 'U') {
      const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      uint32_t code = 0;
      const std::string_view text = source_.substr(at + 1, digits);
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code, 16);
      if (text.size() != digits || end != text.data() + digits || code >= 0x110000 ||
          (code >= 0xD800 && code < 0xE000))
        rendering_.wrong("\\{}{} is not a character", c, text);
      append_utf8(value, code);
      return at + 1 + digits;
    }
    if (c == 'N' || is_digit(c))
      rendering_.wrong("the escape \\{} is not supported: write \\u and four digits", c);
    value += '\\';
    return at;  // Python keeps the backslash of escapes that it does not know
  }

  std::string_view source_;
  Rendering& rendering_;
  size_t at_ = 0;
  bool begins_line_ = true;
  std::string open_;  // brackets
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> lex(std::string_view source, Rendering& rendering) {
  if (std::ssize(source) > kMaxTemplateBytes)
    rendering.wrong("the template has {} bytes: expected at most {}", source.size(), kMaxTemplateBytes);
  if (const size_t at = find_not_text(source); at != source.npos)
    rendering.wrong("is not UTF-8 text at byte {}: save the file as UTF-8", at + 1);
  const std::string text = normalized(source);
  return Lexer(text, rendering).run();
}

}  // namespace tycho::jinja
