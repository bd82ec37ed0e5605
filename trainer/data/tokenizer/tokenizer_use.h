// Changes that files next to a tokenizer make to it when transformers loads it.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/tokenizer/added_tokens.h"
#include "trainer/data/tokenizer/bpe_tokenizer.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {

/// Contents of tokenizer_config.json, special_tokens_map.json and added_tokens.json.
struct TokenizerUse {
  std::string tokenizer_class;               // without "Fast"; "" if the files name none
  std::map<int32_t, AddedToken> added;       // by the id in the files
  std::map<std::string, std::string> named;  // "eos_token" -> its text
  std::vector<AddedToken> special;           // the named special tokens, then further ones; `id` is -1
  std::optional<bool> add_prefix_space;      // false if a tokenizer_config.json does not have it
  bool prefix_space_is_named = false;        // the file has add_prefix_space
  bool split_special_tokens = false;         // special tokens in texts are encoded as text
  std::optional<bool> adds_bos, adds_eos;
  /// Name of the file to change, for messages: tokenizer_config.json, or the file that replaces it.
  std::string place;
};

/// Reads the files next to `place`. Throws Error (kUnusable) naming the file and the field.
TokenizerUse read_tokenizer_use(const TokenizerFilesBeside& beside, const std::string& place);

/// Adds the tokens that a tokenizer.json lacks, with the ids that transformers gives them, and changes those
/// that the files next to it change. `vocab_size`: of the model, without added tokens. Throws Error
/// (kUnusable) where a file gives a token another id.
void add_tokens_of_use(const TokenizerUse& use, size_t vocab_size, TokenizerParts& parts);
/// Checks that a tokenizer.model, to which nothing can be added, has these tokens. Throws Error (kUnusable)
/// for a missing one.
void check_tokens_of_use(const TokenizerUse& use, const TokenizerParts& parts);

/// Adds the space before texts, or removes it, where transformers deviates from the tokenizer.json. Throws
/// Error (kUnusable) where transformers would build another tokenizer.
void apply_prefix_space(const TokenizerUse& use, TokenizerParts& parts);

/// Sets the names of bos, eos and pad. For the classes of transformers that have their own flags, sets the
/// bos and eos that they add.
void apply_names(const TokenizerUse& use, TokenizerParts& parts);

}  // namespace tycho
