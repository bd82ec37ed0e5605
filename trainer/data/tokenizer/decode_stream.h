// Tokens to text, one after the other: what comes out is valid UTF-8 at every moment.
#pragma once
#include <string>

#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {

struct DecodeOptions {
  bool skip_special = false;  // leave special tokens out
  bool continues = false;     // a text stands before these tokens: the first is not the first of a text
};

/// Joined, what `add` and `finish` return does not depend on where characters are cut into tokens. Bytes that
/// are no UTF-8 become U+FFFD, one for each sequence that breaks off.
class DecodeStream {
 public:
  /// The tokenizer must outlive it.
  explicit DecodeStream(const Tokenizer& tokenizer, DecodeOptions options = {})
      : tokenizer_(tokenizer), options_(options), first_(!options.continues) {}

  /// The characters that are complete now; the rest is held back. Throws Error for an id outside the
  /// vocabulary.
  std::string add(int32_t id);
  /// What was held back, when no more tokens come.
  std::string finish();

 private:
  std::string take_valid(bool at_end);

  const Tokenizer& tokenizer_;
  DecodeOptions options_;
  bool first_;
  std::string held_;
};

}  // namespace tycho
