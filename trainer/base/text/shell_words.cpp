// Quotes words for shells and reads them back.
#include "trainer/base/text/shell_words.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "trainer/base/error.h"

namespace tycho {

std::string shell_word(const std::string& word) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) ||
           std::string_view("-_./=:,+@%").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string out = "'";
  for (char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

std::vector<std::string> split_shell_line(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  bool in_word = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\\' && quote != '\'' && i + 1 < line.size()) {
      word += line[++i];
      in_word = true;
    } else if (quote != 0) {
      if (c == quote) quote = 0;
      if (quote != 0) word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      word += c;
      in_word = true;
    } else if (in_word) {
      words.push_back(std::exchange(word, ""));
      in_word = false;
    }
  }
  if (quote != 0) fail(ExitCode::kUnusable, "[command line] a {} is not closed in: {}", quote, line);
  if (in_word) words.push_back(word);
  return words;
}

}  // namespace tycho
