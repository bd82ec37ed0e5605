// Command lines as text that a POSIX shell reads back: how runs remember what started them.
#pragma once
#include <string>
#include <vector>

namespace tycho {

/// Returns the word, quoted where a shell would read it otherwise.
std::string shell_word(const std::string& word);

/// Joins words with spaces, each quoted by shell_word.
std::string shell_line(const std::vector<std::string>& words);

/// Splits a line into words: separated by blanks, with single and double quotes and backslashes, without
/// expansion. Throws Error (kUnusable) on an unclosed quote.
std::vector<std::string> split_shell_line(const std::string& line);

}  // namespace tycho
