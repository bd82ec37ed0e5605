// Normalises by utf8proc, skipping bytes that are not UTF-8 and characters without normal forms.
#include "trainer/data/tokenizer/patterns/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "trainer/base/error.h"
#include "trainer/base/text/utf8.h"
#include "trainer/data/tokenizer/patterns/newer_characters.h"

namespace tycho {
namespace {

utf8proc_option_t options_of(NormalForm form) {
  int options = UTF8PROC_STABLE;
  options |= form == NormalForm::kNfc || form == NormalForm::kNfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  options |= form == NormalForm::kNfkc || form == NormalForm::kNfkd ? UTF8PROC_COMPAT : 0;
  return static_cast<utf8proc_option_t>(options);
}

/// Returns the number of bytes at the start of the text that are characters with normal forms.
size_t valid_length(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint32_t code;
    const size_t length = decode_utf8(text.data() + at, text.size() - at, code);
    if ((length == 1 && code == 0xFFFD) || has_no_normal_form(code)) break;
    at += length;
  }
  return at;
}

void append_normalized(NormalForm form, std::string_view valid, std::string& out) {
  utf8proc_uint8_t* result = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(valid.data()),
                   static_cast<utf8proc_ssize_t>(valid.size()), &result, options_of(form));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, &std::free);
  TYCHO_CHECK(length >= 0, "[tokenizer] a text of {} bytes cannot be normalised: {}", valid.size(),
              utf8proc_errmsg(length));
  out.append(reinterpret_cast<const char*>(result), static_cast<size_t>(length));
}

}  // namespace

std::string normalized(NormalForm form, std::string_view text) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::all_of(text.begin(), text.end(), is_ascii)) return std::string(text);  // every form of it
  std::string out;
  while (!text.empty()) {
    const size_t valid = valid_length(text);
    if (valid > 0) append_normalized(form, text.substr(0, valid), out);
    text.remove_prefix(valid);
    if (text.empty()) break;
    uint32_t code;
    const size_t length = decode_utf8(text.data(), text.size(), code);
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace tycho
