// Converts the spelling of a token to its bytes: the decoder of a tokenizer.json.
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
    std::string literal, content;  // kReplace: replaces literal by content; kMetaspace: literal stands for a
                                   // space
  };

  /// `byte_level`: the vocabulary is spelled in the characters that stand for bytes. Throws Error (kUnusable)
  /// that names what is malformed or not supported.
  TokenDecoder(const TokenizerReader& reader, const TokenizerReader::Value& value, bool byte_level);
  /// Makes Llama 2's decoder: `space` stands for a space, "<0x0A>" for a byte. `strips`: removes the first
  /// space of a text.
  TokenDecoder(std::string space, bool strips);

  std::string bytes(const std::string& spelling) const;
  /// Decodes the first token of a text.
  std::string first_bytes(const std::string& spelling) const;

 private:
  void read_step(const TokenizerReader& reader, const TokenizerReader::Value& value, bool& fused);
  std::string decode(const std::string& spelling, bool first) const;

  std::vector<Step> steps_;
  std::string stripped_;            // removed once from the beginning of a text
  bool drops_first_marks_ = false;  // for kMetaspace: removes `literal` from the first token
};

}  // namespace tycho
