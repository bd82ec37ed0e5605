// The comments of a YAML or TOML file, by line.
#pragma once
#include <string>
#include <vector>

namespace tycho {

/// The comment on one line of a file.
struct CommentLine {
  bool is_blank = false;  // the line is empty
  std::string whole;      // comment of a line without data, as Lua: "-- text"; "" for none
  std::string trailing;   // comment after data, as Lua
};

/// Returns the comment of line n at index n - 1. A # inside quotes does not begin a comment; a # in a block
/// of text over several lines is taken for one.
std::vector<CommentLine> read_comments(const std::string& text);

}  // namespace tycho
