// Tokenizers that are kept as vocab.json and merges.txt, and folders without a tokenizer.json.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {

/// Endings of the names of the file of tokens and of the file of merges.
inline constexpr char kVocabFile[] = "vocab.json";
inline constexpr char kMergesFile[] = "merges.txt";

/// True if a path names the file of tokens.
bool is_vocab_file(const std::string& path);

/// Returns the text of the tokenizer.json that transformers makes of the two files. Supports the classes
/// GPT2Tokenizer, which is also used if no class is named, and Qwen2Tokenizer. `place` names vocab.json in
/// messages. Throws Error (kUnusable) for other classes.
std::string tokenizer_json_of_vocab(std::string_view vocab, std::string_view merges,
                                    const TokenizerFilesBeside& beside, const std::string& place);

/// Returns the tokenizer.json made of a folder's vocab.json and merges.txt, or of its tekken.json; nullopt
/// when it has neither. `files`: contents by name. Throws Error (kUnusable) where none can be made.
std::optional<std::string> made_tokenizer_json(const std::map<std::string, std::string>& files,
                                               const std::string& folder);

}  // namespace tycho
