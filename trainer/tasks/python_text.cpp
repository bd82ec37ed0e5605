// Unicode's classes come from utf8proc.
#include "trainer/tasks/python_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "trainer/base/text/utf8.h"

namespace tycho {
namespace {

struct TextCharacter {
  uint32_t code = 0;
  size_t begin = 0, length = 0;
};

std::vector<TextCharacter> characters_of(std::string_view text) {
  std::vector<TextCharacter> characters;
  for (size_t at = 0; at < text.size();) {
    TextCharacter one{.begin = at};
    one.length = decode_utf8(text.data() + at, text.size() - at, one.code);
    at += one.length;
    characters.push_back(one);
  }
  return characters;
}

/// Same as str.isspace, which includes ASCII's separators.
bool is_python_space(uint32_t code) {
  if (code < 0x80) return code == ' ' || (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x1f);
  constexpr std::array<uint32_t, 8> kOthers = {0x85, 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000};
  return (code >= 0x2000 && code <= 0x200a) ||
         std::find(kOthers.begin(), kOthers.end(), code) != kOthers.end();
}

utf8proc_category_t category(uint32_t code) { return utf8proc_category(static_cast<utf8proc_int32_t>(code)); }

/// Returns true for characters that \w matches.
bool is_word_character(uint32_t code) {
  const utf8proc_category_t kind = category(code);
  return code == '_' || (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO) ||
         (kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO);
}

bool is_cased(uint32_t code) {
  return utf8proc_isupper(static_cast<utf8proc_int32_t>(code)) != 0 ||
         utf8proc_islower(static_cast<utf8proc_int32_t>(code)) != 0 || category(code) == UTF8PROC_CATEGORY_LT;
}

bool is_case_ignorable(uint32_t code) {
  constexpr std::array<uint32_t, 7> kPunctuation = {'\'', '.', ':', 0xb7, 0x2018, 0x2019, 0x2024};
  const utf8proc_category_t kind = category(code);
  return kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_ME || kind == UTF8PROC_CATEGORY_CF ||
         kind == UTF8PROC_CATEGORY_LM || kind == UTF8PROC_CATEGORY_SK ||
         std::find(kPunctuation.begin(), kPunctuation.end(), code) != kPunctuation.end();
}

/// Returns true when a cased character is before `at` and none after it, ignoring case-ignorable ones.
bool ends_a_word(const std::vector<TextCharacter>& text, size_t at) {
  const auto next_cased = [&](auto from, auto to) {
    const auto found =
        std::find_if(from, to, [](const TextCharacter& c) { return !is_case_ignorable(c.code); });
    return found != to && is_cased(found->code);
  };
  const auto here = static_cast<std::ptrdiff_t>(at);
  return next_cased(std::make_reverse_iterator(text.begin() + here), text.rend()) &&
         !next_cased(text.begin() + here + 1, text.end());
}

void append_utf8(std::string& text, uint32_t code) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes.data());
  text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(length));
}

}  // namespace

std::string_view python_rstrip(std::string_view text) {
  size_t end = 0;
  for (const TextCharacter& one : characters_of(text))
    if (!is_python_space(one.code)) end = one.begin + one.length;
  return text.substr(0, end);
}

std::string_view python_strip(std::string_view text) {
  const std::string_view whole = python_rstrip(text);
  for (const TextCharacter& one : characters_of(whole))
    if (!is_python_space(one.code)) return whole.substr(one.begin);
  return {};
}

std::vector<std::string> python_split(std::string_view text) {
  std::vector<std::string> parts;
  bool inside = false;
  for (const TextCharacter& one : characters_of(text)) {
    const bool space = is_python_space(one.code);
    if (!space && !inside) parts.emplace_back();
    if (!space) parts.back() += text.substr(one.begin, one.length);
    inside = !space;
  }
  return parts;
}

std::string python_lower(std::string_view text) {
  constexpr uint32_t kCapitalSigma = 0x3a3, kFinalSigma = 0x3c2, kDottedCapitalI = 0x130, kDotAbove = 0x307;
  const std::vector<TextCharacter> characters = characters_of(text);
  std::string lower;
  for (size_t i = 0; i < characters.size(); ++i) {
    const uint32_t code = characters[i].code;
    if (code == kDottedCapitalI) {
      lower += 'i';
      append_utf8(lower, kDotAbove);
    } else if (code == kCapitalSigma && ends_a_word(characters, i)) {
      append_utf8(lower, kFinalSigma);
    } else {
      append_utf8(lower, static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
    }
  }
  return lower;
}

std::string without_words(std::string_view text, const std::vector<std::string_view>& words) {
  std::string out, word;
  const auto end_word = [&] {
    out += std::find(words.begin(), words.end(), word) != words.end() ? " " : word;
    word.clear();
  };
  for (const TextCharacter& one : characters_of(text)) {
    if (is_word_character(one.code)) {
      word += text.substr(one.begin, one.length);
      continue;
    }
    end_word();
    out += text.substr(one.begin, one.length);
  }
  end_word();
  return out;
}

}  // namespace tycho
