// Finds the tokens of a tokenizer that begin and end texts, by their names.
#pragma once
#include <string>

#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {

/// Returns the end-of-text token that tokenizer_config.json or tokenizer.model names; else "<|endoftext|>",
/// "<|end_of_text|>" or "</s>", the first that is a special token; "" if there is none.
std::string find_eos_token(const Tokenizer& tokenizer);
/// Returns the begin-of-text token that tokenizer_config.json or tokenizer.model names; else
/// "<|begin_of_text|>", "<s>" or "<|endoftext|>" (a token that only separates texts is both), the first that
/// is a special token; "" if there is none.
std::string find_bos_token(const Tokenizer& tokenizer);
/// Returns the end of a message about a tokenizer with too many tokens: it names tokens that only the files
/// next to it define, and what to do about them. "" when there are none.
std::string note_added_beside(const Tokenizer& tokenizer);

}  // namespace tycho
