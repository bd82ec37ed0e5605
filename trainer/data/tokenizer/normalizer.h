// What a tokenizer does to a text before it cuts it: the normalizer of a tokenizer.json.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/text/normal_form.h"
#include "trainer/data/text/split_regex.h"

namespace tycho {

/// The fields that its kind has no use for stay empty.
struct NormalizerStep {
  enum class Kind {
    kForm,          // a normal form of Unicode
    kLowercase,     // each character by itself, as Rust's to_lowercase does
    kStripAccents,  // leaves out combining marks
    kStrip,         // leaves out white space at the ends
    kPrepend,       // puts `content` before a text that is not empty
    kReplace,       // puts `content` in place of `literal`, or of what `regex` matches
    kOneSpace,      // leaves out spaces at the beginning and those that follow a space
    kTrimEnd        // leaves out every `literal` at the end; it is not empty
  };
  Kind kind = Kind::kForm;
  NormalForm form = NormalForm::kNfc;
  bool left = false, right = false;
  std::string literal, content;
  std::shared_ptr<const SplitRegex> regex;
};

/// The text after all steps, in order. Bytes that are not valid UTF-8 stay as they are.
std::string normalized(const std::vector<NormalizerStep>& steps, std::string_view text);

}  // namespace tycho
