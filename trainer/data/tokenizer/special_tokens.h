// Which tokens of a tokenizer begin and end texts, by the names that tokenizers give them.
#pragma once
#include <string>

#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {

/// As tokenizer_config.json or tokenizer.model names it; else "<|endoftext|>", "<|end_of_text|>" or "</s>",
/// the first that is a special token; "" for none.
std::string find_eos_token(const Tokenizer& tokenizer);
/// Likewise; else "<|begin_of_text|>", "<s>" or "<|endoftext|>": one token that only separates texts is both.
std::string find_bos_token(const Tokenizer& tokenizer);
/// The end of a message about a tokenizer with too many tokens: those that only files beside it name, and
/// what to do about them; "" when there are none.
std::string note_added_beside(const Tokenizer& tokenizer);

}  // namespace tycho
