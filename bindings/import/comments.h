// The comments of a YAML or TOML file, by line.
#pragma once
#include <string>
#include <vector>

namespace tycho {

/// The comment on one line of a file.
struct CommentLine {
  bool is_blank = false;  // nothing on it at all
  std::string whole;      // the comment of a line that is nothing else, as Lua: "-- text"; "" for none
  std::string trailing;   // the comment behind data, as Lua
};

/// Line n at n - 1. A # inside quotes does not begin a comment; inside a block of text over many lines
/// it looks as if it did.
std::vector<CommentLine> read_comments(const std::string& text);

}  // namespace tycho
