// Tokenizers that are kept as vocab.json and merges.txt.
#pragma once
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

}  // namespace tycho
