// The pre_tokenizer of a tokenizer.json.
#pragma once
#include <string>
#include <vector>

#include "trainer/data/tokenizer/pre_tokenizer.h"
#include "trainer/data/tokenizer/tokenizer_reader.h"

namespace tycho {

/// Throws Error (kUnusable) that names what is malformed or not supported.
std::vector<PreTokenizerStep> read_pre_tokenizers(const TokenizerReader& reader,
                                                  const TokenizerReader::Value& value);

/// The steps in words: "pattern of GPT-2", "bytes".
std::vector<std::string> pre_tokenizer_names(const std::vector<PreTokenizerStep>& steps);

}  // namespace tycho
