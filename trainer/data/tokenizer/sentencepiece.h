// The file tokenizer.model of SentencePiece, as Llama 2 and Mistral use it: BPE with byte fallback.
#pragma once
#include <string>
#include <string_view>

#include "trainer/data/tokenizer/bpe_tokenizer.h"

namespace tycho {

/// True if the bytes are a model of SentencePiece rather than JSON.
bool is_sentencepiece(std::string_view bytes);

/// Reads a ModelProto (sentencepiece_model.proto of SentencePiece 0.2). `place` names it in messages. Throws
/// Error (kUnusable) that names what is damaged or not supported. The result encodes as SentencePiece does:
/// only user-defined special pieces are found in texts.
TokenizerParts parse_sentencepiece(std::string_view bytes, const std::string& place);

}  // namespace tycho
