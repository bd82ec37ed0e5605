// Changes that a tokenizer makes to a text before it is split: the normalizer of a tokenizer.json.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/tokenizer/patterns/normal_form.h"
#include "trainer/data/tokenizer/patterns/split_regex.h"

namespace tycho {

/// One step of a normalizer. Fields that its kind does not use stay empty.
struct NormalizerStep {
  enum class Kind {
    kForm,          // a normal form of Unicode
    kLowercase,     // each character by itself, as Rust's to_lowercase does
    kStripAccents,  // removes combining marks
    kStrip,         // removes white space at the ends
    kPrepend,       // puts `content` before a text that is not empty
    kReplace,       // replaces `literal`, or the matches of `regex`, by `content`
    kOneSpace,      // removes spaces at the beginning and after another space
    kTrimEnd        // removes every `literal` at the end; it is not empty
  };
  Kind kind = Kind::kForm;
  NormalForm form = NormalForm::kNfc;
  bool left = false, right = false;
  std::string literal, content;
  std::shared_ptr<const SplitRegex> regex;
};

/// Applies all steps to the text, in order. Bytes that are not valid UTF-8 stay as they are.
std::string normalized(const std::vector<NormalizerStep>& steps, std::string_view text);

}  // namespace tycho
