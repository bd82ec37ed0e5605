// Finds comments line by line.
#include "bindings/import/comments.h"

#include <sstream>

namespace tycho {
namespace {

/// Returns where the comment of a line begins: a # at its start or after a blank, outside quotes; npos for
/// none.
size_t comment_start(const std::string& line) {
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const bool begins_word =
        i == 0 || std::string_view(" \t[{,:=").find(line[i - 1]) != std::string_view::npos;
    if (quote != 0) {
      if (quote == '"' && c == '\\')
        ++i;
      else if (c == quote)
        quote = 0;
    } else if ((c == '"' || c == '\'') && begins_word) {
      quote = c;
    } else if (c == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) {
      return i;
    }
  }
  return std::string::npos;
}

/// Returns "# text" as "-- text", without a "--[[", which would begin a comment of several lines.
std::string as_lua(std::string comment) {
  comment.erase(0, 1);
  while (!comment.empty() && (comment.back() == ' ' || comment.back() == '\r')) comment.pop_back();
  const bool needs_blank = !comment.empty() && comment[0] == '[';
  return (needs_blank ? "-- " : "--") + comment;
}

}  // namespace

std::vector<CommentLine> read_comments(const std::string& text) {
  std::vector<CommentLine> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    CommentLine& out = lines.emplace_back();
    const size_t data = line.find_first_not_of(" \t\r");
    out.is_blank = data == std::string::npos;
    const size_t start = comment_start(line);
    if (start == std::string::npos) continue;
    (start == data ? out.whole : out.trailing) = as_lua(line.substr(start));
  }
  return lines;
}

}  // namespace tycho
