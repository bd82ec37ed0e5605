// Decodes tokens to text one after the other; the output is valid UTF-8 at every moment.
#pragma once
#include <string>

#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {

struct DecodeOptions {
  bool skip_special = false;  // leave out special tokens
  bool continues = false;     // earlier text precedes these tokens: the first one is not the first of a text
};

/// Decodes tokens one by one. The joined results of `add` and `finish` do not depend on where characters are
/// cut into tokens. Bytes that are not UTF-8 become U+FFFD, one for each truncated sequence.
class DecodeStream {
 public:
  /// `tokenizer` must outlive this object.
  explicit DecodeStream(const Tokenizer& tokenizer, DecodeOptions options = {})
      : tokenizer_(tokenizer), options_(options), first_(!options.continues) {}

  /// Returns the characters that are complete now, and holds back the rest. Throws Error for an id outside
  /// the vocabulary.
  std::string add(int32_t id);
  /// Returns the held-back bytes as text. Call it after the last token.
  std::string finish();

 private:
  std::string take_valid(bool at_end);

  const Tokenizer& tokenizer_;
  DecodeOptions options_;
  bool first_;
  std::string held_;
};

}  // namespace tycho
