// Reads a tokenizer.json, and writes one for a vocabulary that was just trained.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/data/tokenizer/bpe_tokenizer.h"
#include "trainer/data/tokenizer/tokenizer_use.h"

namespace tycho {

/// Parses the text of a tokenizer.json within limits. `place` names it in messages. Throws Error (kUnusable)
/// for what is malformed and for what is not supported, naming the field. `use` changes what it changes in
/// transformers: tokens that are found in texts, and the space before them.
TokenizerParts parse_tokenizer_json(std::string_view text, const std::string& place,
                                    const TokenizerUse& use = {});

/// Vocabulary to write: tokens in the spelling of the file, by id; merges as pairs of ids, first merge first.
struct TrainedVocabulary {
  std::vector<std::string> tokens;
  std::vector<std::pair<int32_t, int32_t>> merges;
  std::vector<std::string> special_tokens;
  std::string unknown;  // token that stands for bytes without one; "": all bytes have tokens
};

/// Returns the bytes that Hugging Face's tokenizers write for a byte-level BPE: Tokenizer.save(path,
/// pretty=True).
std::string format_tokenizer_json(const TrainedVocabulary& vocabulary);

}  // namespace tycho
