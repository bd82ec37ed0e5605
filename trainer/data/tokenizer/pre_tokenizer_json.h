// The pre_tokenizer of a tokenizer.json.
#pragma once
#include <string>
#include <vector>

#include "trainer/data/tokenizer/pre_tokenizer.h"
#include "trainer/data/tokenizer/tokenizer_reader.h"

namespace tycho {

/// Reads the field `pre_tokenizer`. Throws Error (kUnusable) that names what is malformed or not supported.
std::vector<PreTokenizerStep> read_pre_tokenizers(const TokenizerReader& reader,
                                                  const TokenizerReader::Value& value);

/// Describes the steps: "pattern of GPT-2", "bytes".
std::vector<std::string> pre_tokenizer_names(const std::vector<PreTokenizerStep>& steps);

}  // namespace tycho
