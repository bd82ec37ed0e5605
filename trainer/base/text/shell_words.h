// Command lines as text that a POSIX shell reads back: how runs remember what started them.
#pragma once
#include <string>
#include <vector>

namespace tycho {

/// A word, quoted where a shell would read it otherwise.
std::string shell_word(const std::string& word);

/// Words with spaces between them, each quoted as shell_word does.
std::string shell_line(const std::vector<std::string>& words);

/// The words of a line: blanks part them, single and double quotes and backslashes are read, nothing is
/// expanded. Throws Error (kUnusable) on a quote that is not closed.
std::vector<std::string> split_shell_line(const std::string& line);

}  // namespace tycho
