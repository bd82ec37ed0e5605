// One function per kind of step.
#include "trainer/data/tokenizer/normalizer.h"

#include <utf8proc.h>

#include <array>

#include "trainer/base/text/utf8.h"
#include "trainer/data/tokenizer/patterns/newer_characters.h"
#include "trainer/data/tokenizer/patterns/unicode_categories.h"

namespace tycho {
namespace {

/// Calls visit(code, bytes) for every character. A byte that is not UTF-8 has the code U+FFFD.
template <class Visit>
void for_each_character(std::string_view text, Visit visit) {
  for (size_t at = 0; at < text.size();) {
    uint32_t code;
    const size_t length = decode_utf8(text.data() + at, text.size() - at, code);
    visit(code, text.substr(at, length));
    at += length;
  }
}

void append_utf8(uint32_t code, std::string& out) {
  std::array<utf8proc_uint8_t, 4> bytes;
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes.data());
  out.append(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(length));
}

/// Lowercases characters of Unicode 16 and 17, which utf8proc does not know yet.
uint32_t new_lowercase(uint32_t code) {
  if (code >= 0x10D50 && code <= 0x10D65) return code + 0x20;
  if (code >= 0x16EA0 && code <= 0x16EB8) return code + 0x1B;
  switch (code) {
    case 0x1C89: return 0x1C8A;
    case 0xA7CB: return 0x264;
    case 0xA7CC:
    case 0xA7CE:
    case 0xA7D2:
    case 0xA7D4:
    case 0xA7DA: return code + 1;
    case 0xA7DC: return 0x19B;
    default: return code;
  }
}

std::string lowercased(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_character(text, [&](uint32_t code, std::string_view bytes) {
    if (code == 0xFFFD) {
      out += bytes;
    } else if (code == 0x130) {
      out += "i\u0307";  // the only character with a lower case of two characters
    } else {
      append_utf8(new_lowercase(static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)))),
                  out);
    }
  });
  return out;
}

std::string without_accents(std::string_view text) {
  std::string out;
  for_each_character(text, [&](uint32_t code, std::string_view bytes) {
    const auto category = static_cast<Category>(categories()[code]);
    const bool mark = category >= Category::kMn && category <= Category::kMe;
    if (mark == is_other_mark(code)) out += bytes;
  });
  return out;
}

std::string stripped(const NormalizerStep& step, std::string_view text) {
  size_t begin = 0, end = 0, at = 0;
  bool started = false;
  for_each_character(text, [&](uint32_t code, std::string_view bytes) {
    const bool space = is_white_space(code);
    if (!space && !started) begin = at;
    started = started || !space;
    at += bytes.size();
    if (!space) end = at;
  });
  if (!started) return step.left || step.right ? std::string() : std::string(text);
  if (!step.left) begin = 0;
  if (!step.right) end = text.size();
  return std::string(text.substr(begin, end - begin));
}

std::string replaced(const NormalizerStep& step, std::string_view text) {
  std::string out;
  SplitRegex::Effort effort;
  size_t position = 0, from = 0;
  while (from <= text.size()) {
    size_t begin = std::string_view::npos, end = 0;
    if (step.regex) {
      if (const auto match = step.regex->find(text, from, effort)) begin = match->begin, end = match->end;
    } else {
      begin = text.find(step.literal, from);
      end = begin + step.literal.size();
    }
    if (begin == std::string_view::npos) break;
    out.append(text.substr(position, begin - position)).append(step.content);
    position = end;
    from = end;
    if (begin == end) {  // nothing was matched: the next search begins after the next character
      uint32_t code;
      from += end < text.size() ? decode_utf8(text.data() + end, text.size() - end, code) : 1;
    }
  }
  if (position < text.size()) out.append(text.substr(position));
  return out;
}

std::string with_single_spaces(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
  return out;
}

std::string trimmed(const NormalizerStep& step, std::string text) {
  while (text.ends_with(step.literal)) text.resize(text.size() - step.literal.size());
  return text;
}

std::string applied(const NormalizerStep& step, std::string text) {
  using Kind = NormalizerStep::Kind;
  switch (step.kind) {
    case Kind::kForm: return normalized(step.form, text);
    case Kind::kLowercase: return lowercased(text);
    case Kind::kStripAccents: return without_accents(text);
    case Kind::kStrip: return stripped(step, text);
    case Kind::kPrepend: return text.empty() ? text : step.content + text;
    case Kind::kReplace: return replaced(step, text);
    case Kind::kOneSpace: return with_single_spaces(text);
    case Kind::kTrimEnd: return trimmed(step, std::move(text));
  }
  return text;
}

}  // namespace

std::string normalized(const std::vector<NormalizerStep>& steps, std::string_view text) {
  std::string result(text);
  for (const NormalizerStep& step : steps) result = applied(step, std::move(result));
  return result;
}

}  // namespace tycho
