// The regular expressions, written out by hand: no backtracking, one pass, one table look-up per
// character.
#include "trainer/data/tokenizer/patterns/piece_scanner.h"

#include "trainer/base/text/utf8.h"
#include "trainer/data/tokenizer/patterns/unicode_classes.h"

namespace tycho {
namespace {

constexpr uint8_t kOther = static_cast<uint8_t>(CharClass::kOther);
constexpr uint8_t kLetter = static_cast<uint8_t>(CharClass::kLetter);
constexpr uint8_t kNumber = static_cast<uint8_t>(CharClass::kNumber);
constexpr uint8_t kSpace = static_cast<uint8_t>(CharClass::kSpace);

bool is_newline(char c) { return c == '\n' || c == '\r'; }

}  // namespace

const char* pattern_text(SplitPattern pattern) {
  switch (pattern) {
    case SplitPattern::kNone: return "";
    case SplitPattern::kGpt2:
      return R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
    case SplitPattern::kLlama3:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
             R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case SplitPattern::kQwen2:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
             R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  }
  return "";
}

struct PieceScanner::Char {
  uint8_t char_class;
  size_t length;
};

PieceScanner::PieceScanner(SplitPattern pattern, std::string_view text)
    : pattern_(pattern), text_(text), classes_(char_classes()) {}

std::string_view PieceScanner::next() {
  if (position_ == text_.size()) return {};
  const size_t begin = position_;
  switch (pattern_) {
    case SplitPattern::kNone: position_ = text_.size(); break;
    case SplitPattern::kGpt2: position_ = end_of_gpt2_piece(begin); break;
    case SplitPattern::kLlama3: position_ = end_of_llama3_piece(begin, 3); break;
    case SplitPattern::kQwen2: position_ = end_of_llama3_piece(begin, 1); break;
  }
  return text_.substr(begin, position_ - begin);
}

PieceScanner::Char PieceScanner::at(size_t position) const {
  const auto byte = static_cast<uint8_t>(text_[position]);
  if (byte < 0x80) return {classes_[byte], 1};
  uint32_t code;
  const size_t length = decode_utf8(text_.data() + position, text_.size() - position, code);
  return {classes_[code], length};
}

size_t PieceScanner::skip(size_t position, uint8_t char_class) const {
  while (position < text_.size()) {
    const Char c = at(position);
    if (c.char_class != char_class) break;
    position += c.length;
  }
  return position;
}

/// Returns the end of the contraction that starts with the apostrophe at `position`; `position` if there is
/// none.
size_t PieceScanner::end_of_contraction(size_t position, bool any_case) const {
  const size_t left = text_.size() - position;
  const auto letter = [&](size_t i) -> char {
    const char c = text_[position + i];
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  if (left >= 2) {
    const char c = letter(1);
    if (c == 's' || c == 't' || c == 'm' || c == 'd') return position + 2;
  }
  if (left >= 3) {
    const char c = letter(1), d = letter(2);
    if ((c == 'r' && d == 'e') || (c == 'v' && d == 'e') || (c == 'l' && d == 'l')) return position + 3;
    // U+017F, the long s, is an s when case does not matter.
    if (any_case && text_[position + 1] == '\xC5' && text_[position + 2] == '\xBF') return position + 3;
  }
  return position;
}

/// Returns the end of \s+(?!\S)|\s+ : a run of white space leaves its last character to the word that
/// follows.
size_t PieceScanner::end_of_spaces(size_t position) const {
  size_t last = position, end = position;
  while (end < text_.size()) {
    const Char c = at(end);
    if (c.char_class != kSpace) break;
    last = end;
    end += c.length;
  }
  return end == text_.size() || last == position ? end : last;
}

size_t PieceScanner::end_of_gpt2_piece(size_t position) const {
  const char first = text_[position];
  if (first == '\'') {
    const size_t end = end_of_contraction(position, false);
    if (end != position) return end;
  }
  size_t start = position;
  if (first == ' ' && position + 1 < text_.size()) ++start;
  const Char c = at(start);
  if (c.char_class == kSpace) return end_of_spaces(position);
  return skip(start + c.length, c.char_class);
}

size_t PieceScanner::end_of_llama3_piece(size_t position, int max_digits) const {
  const char first = text_[position];
  if (first == '\'') {
    const size_t end = end_of_contraction(position, true);
    if (end != position) return end;
  }
  const Char c = at(position);
  if (c.char_class == kLetter) return skip(position + c.length, kLetter);
  if (c.char_class == kNumber) {
    size_t end = position + c.length;
    for (int digits = 1; digits < max_digits && end < text_.size(); ++digits) {
      const Char next = at(end);
      if (next.char_class != kNumber) break;
      end += next.length;
    }
    return end;
  }
  const size_t second = position + c.length;
  if (!is_newline(first) && second < text_.size() && at(second).char_class == kLetter)
    return skip(second, kLetter);
  const size_t visible = first == ' ' ? second : position;
  if (visible < text_.size() && at(visible).char_class == kOther) {
    size_t end = skip(visible, kOther);
    while (end < text_.size() && is_newline(text_[end])) ++end;
    return end;
  }
  // \s*[\r\n]+ : up to the last newline of the run.
  const size_t run = skip(position, kSpace);
  for (size_t end = run; end > position; --end)
    if (is_newline(text_[end - 1])) return end;
  return end_of_spaces(position);
}

}  // namespace tycho
