// From the spelling of a token to the bytes that it stands for: the decoder of a tokenizer.json.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/tokenizer/tokenizer_reader.h"

namespace tycho {

/// Immutable.
class TokenDecoder {
 public:
  enum class Kind { kByteLevel, kReplace, kByteFallback, kMetaspace };
  struct Step {
    Kind kind;
    std::string literal, content;  // kReplace: what, by what; kMetaspace: what stands for a space
  };

  /// `byte_level`: the vocabulary is spelled in the characters that stand for bytes. Throws Error (kUnusable)
  /// that names what is malformed or not supported.
  TokenDecoder(const TokenizerReader& reader, const TokenizerReader::Value& value, bool byte_level);
  /// Llama 2's: `space` stands for a space, "<0x0A>" for a byte; `strips`: the first space of a text goes.
  TokenDecoder(std::string space, bool strips);

  std::string bytes(const std::string& spelling) const;
  /// Of the first token of a text.
  std::string first_bytes(const std::string& spelling) const;

 private:
  void read_step(const TokenizerReader& reader, const TokenizerReader::Value& value, bool& fused);
  std::string decode(const std::string& spelling, bool first) const;

  std::vector<Step> steps_;
  std::string stripped_;            // one of it goes from the beginning of a text
  bool drops_first_marks_ = false;  // of kMetaspace
};

}  // namespace tycho
