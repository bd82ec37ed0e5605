// Patterns of Split and Replace: {"String": ".."} or {"Regex": ".."}.
#pragma once
#include <memory>
#include <string>

#include "trainer/base/error.h"
#include "trainer/data/tokenizer/patterns/split_regex.h"
#include "trainer/data/tokenizer/tokenizer_reader.h"

namespace tycho {

/// A literal or a regular expression; the other is empty.
struct SearchPattern {
  std::string literal, regex;
  bool is_regex = false;
};

/// Reads the field `pattern` of a component. Throws Error (kUnusable) when it is malformed.
inline SearchPattern read_pattern(const TokenizerReader& reader, const TokenizerReader::Value& component,
                                  const std::string& where) {
  const auto& pattern = reader.member(component, "pattern", where.c_str());
  SearchPattern found;
  const bool text = pattern.is_object() && pattern.contains("String") && pattern["String"].is_string();
  found.is_regex = pattern.is_object() && pattern.contains("Regex") && pattern["Regex"].is_string();
  if (text) found.literal = pattern["String"].get<std::string>();
  if (found.is_regex) found.regex = pattern["Regex"].get<std::string>();
  if (text == found.is_regex) reader.malformed("the pattern of {} must be a String or a Regex", where);
  if (text && found.literal.empty()) reader.unsupported("an empty String as the pattern of " + where);
  return found;
}

/// Compiles a pattern. Throws Error (kUnusable), with the name of the file, when that fails.
inline std::shared_ptr<const SplitRegex> compile_pattern(const TokenizerReader& reader,
                                                         const std::string& regex) {
  try {
    return std::make_shared<SplitRegex>(regex);
  } catch (const Error& error) {
    reader.malformed("{}", error.what());
  }
}

}  // namespace tycho
