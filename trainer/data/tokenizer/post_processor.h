// What a tokenizer's own encoding puts before and after a text.
#pragma once
#include <string>
#include <string_view>

#include "trainer/data/tokenizer/bpe_tokenizer.h"
#include "trainer/data/tokenizer/tokenizer_reader.h"

namespace tycho {

/// Reads the post_processor of a tokenizer.json into text_begin and text_end.
void read_post_processor(const TokenizerReader& reader, const TokenizerReader::Value& processor,
                         TokenizerParts& parts);

/// What the tokenizer_config.json beside it changes: some classes of transformers add bos and eos by flags of
/// their own, whatever the post_processor says. `place` names the file in messages.
void read_tokenizer_config(std::string_view text, const std::string& place, TokenizerParts& parts);

}  // namespace tycho
