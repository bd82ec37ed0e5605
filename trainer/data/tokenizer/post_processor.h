// Tokens that a tokenizer's own encoding puts before and after a text.
#pragma once
#include "trainer/data/tokenizer/bpe_tokenizer.h"
#include "trainer/data/tokenizer/tokenizer_reader.h"

namespace tycho {

/// Reads the post_processor of a tokenizer.json into text_begin and text_end.
void read_post_processor(const TokenizerReader& reader, const TokenizerReader::Value& processor,
                         TokenizerParts& parts);

}  // namespace tycho
