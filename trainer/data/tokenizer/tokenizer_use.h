// How transformers uses a tokenizer: what the files beside it add to its own.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/tokenizer/added_tokens.h"
#include "trainer/data/tokenizer/bpe_tokenizer.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {

/// Statements of tokenizer_config.json, special_tokens_map.json and added_tokens.json.
struct TokenizerUse {
  std::string tokenizer_class;               // without "Fast"; "" where none is named
  std::map<int32_t, AddedToken> added;       // by the id that the files give
  std::map<std::string, std::string> named;  // "eos_token" -> its text
  std::vector<AddedToken> special;           // those named, then more special ones; `id` is -1
  std::optional<bool> add_prefix_space;      // false where a tokenizer_config.json leaves it out
  bool prefix_space_is_named = false;        // the file says it
  bool split_special_tokens = false;         // special tokens in texts stay text
  std::optional<bool> adds_bos, adds_eos;
  /// Names the file to change in messages: the tokenizer_config.json, or what stands in for it.
  std::string place;
};

/// Reads the files beside `place`. Throws Error (kUnusable) naming the file and the field.
TokenizerUse read_tokenizer_use(const TokenizerFilesBeside& beside, const std::string& place);

/// Adds the tokens that a tokenizer.json lacks, with the ids that transformers gives them, and changes those
/// that the files beside it change. `vocab_size`: of the model, without added tokens. Throws Error
/// (kUnusable) where a file gives a token another id.
void add_tokens_of_use(const TokenizerUse& use, size_t vocab_size, TokenizerParts& parts);
/// Checks the same for a tokenizer.model, to which nothing can be added: throws Error (kUnusable) for what it
/// lacks.
void check_tokens_of_use(const TokenizerUse& use, const TokenizerParts& parts);

/// Puts a space before texts, or leaves it out, where transformers does so against the tokenizer.json. Throws
/// Error (kUnusable) where it would build another tokenizer.
void apply_prefix_space(const TokenizerUse& use, TokenizerParts& parts);

/// Names bos, eos and pad, and lets the classes of transformers that go by flags of their own add bos and
/// eos.
void apply_names(const TokenizerUse& use, TokenizerParts& parts);

}  // namespace tycho
