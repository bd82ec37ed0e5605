// Characters for which normalizers and pre-tokenizers of Hugging Face's `tokenizers` use other versions of
// Unicode than its regular expressions: 9 for normal forms, 8 for punctuation, 17 for numbers.
#pragma once
#include <cstdint>

#include "trainer/data/tokenizer/patterns/unicode_categories.h"

namespace tycho {

/// True if normal forms leave the character as it is, and reorder nothing across it.
bool has_no_normal_form(uint32_t code);

/// True if StripAccents, Punctuation or Digits judge the character differently than its general category
/// says.
bool is_other_mark(uint32_t code);
bool is_other_punctuation(uint32_t code);
bool is_other_number(uint32_t code);

}  // namespace tycho
