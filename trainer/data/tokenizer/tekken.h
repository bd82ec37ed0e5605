// tekken.json, which Mistral's models have as their tokenizer.
#pragma once
#include <string>
#include <string_view>

namespace tycho {

/// Name of the file in Mistral's folders.
inline constexpr char kTekkenFile[] = "tekken.json";

/// True if a path names such a file: its name has "tekken" in it and ends with .json, as for mistral-common.
bool is_tekken_file(const std::string& path);

/// Returns the text of the tokenizer.json that transformers makes of a tekken.json. It has the ids of
/// mistral-common, but for special tokens in texts, which are recognised. `place` names the file in messages.
/// Throws Error (kUnusable) for what mistral-common refuses.
std::string tokenizer_json_of_tekken(std::string_view text, const std::string& place);

}  // namespace tycho
