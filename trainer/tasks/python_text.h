// Text as Python's str methods see it, so that prompts and answers are cut where LLM Foundry cuts them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tycho {

/// Return the text without Unicode white space at its end (str.rstrip) or at both ends (str.strip). `text` is
/// UTF-8.
std::string_view python_rstrip(std::string_view text);
std::string_view python_strip(std::string_view text);
/// Returns the parts between white space (str.split); none is empty.
std::vector<std::string> python_split(std::string_view text);
/// Same as str.lower, including the capital sigma at the end of a word.
std::string python_lower(std::string_view text);
/// Replaces each of these words by a space where it stands alone, like re.sub(r"\b(a|b)\b", " ").
std::string without_words(std::string_view text, const std::vector<std::string_view>& words);

}  // namespace tycho
