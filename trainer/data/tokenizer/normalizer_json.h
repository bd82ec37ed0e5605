// The normalizer of a tokenizer.json.
#pragma once
#include <vector>

#include "trainer/data/tokenizer/normalizer.h"
#include "trainer/data/tokenizer/tokenizer_reader.h"

namespace tycho {

/// Reads the field `normalizer`. Throws Error (kUnusable) that names what is malformed or not supported.
std::vector<NormalizerStep> read_normalizers(const TokenizerReader& reader,
                                             const TokenizerReader::Value& value);

/// Describes the steps: "NFC", "Replace".
std::vector<std::string> normalizer_names(const std::vector<NormalizerStep>& steps);

}  // namespace tycho
