// Writes a recipe line by line, with the comments of the file that it is made from.
#pragma once
#include <string>
#include <vector>

#include "bindings/define/source_file.h"
#include "bindings/import/comments.h"
#include "trainer/base/json.h"

namespace tycho {

/// Returns the text as a Lua string.
std::string lua_quoted(const std::string& text);

/// Returns a valid name for a Lua local: "data_local" for "data-local", "end_" for "end".
std::string lua_name(const std::string& text);

/// Returns a name as a key of a Lua table: near, ["near-again"], ["repeat"].
std::string lua_key(const std::string& name);

/// Returns a dotted path after a variable: r.eval_data["end"].split for "r" and "eval_data.end.split".
std::string lua_path(const std::string& variable, const std::string& path);

/// Returns the fields that differ from `usual` as the inside of a Lua table, without "kind".
std::string lua_fields(const Json& fields, const Json& usual);

class LuaWriter {
 public:
  explicit LuaWriter(std::vector<CommentLine> comments) : comments_(std::move(comments)) {}

  /// Restricts comments_before() to the lines from `first` to `last`.
  void enter(int first, int last);
  /// Writes the comments between the last written line and `line`, within the entered range.
  void comments_before(int line);
  /// Writes one statement or field, with the comment on `line` of the file (0: none) or `comment`. `place` is
  /// its origin.
  void write(const std::string& text, int line, const std::string& comment = "",
             const SourceLocation& place = {});
  /// Writes the comment on `line` of the file as a line of its own.
  void write_comment(int line);
  /// Opens and closes a table; lines in between are indented.
  void open(const std::string& text, int line, const SourceLocation& place);
  void close(const std::string& text);
  /// Returns all lines. Call it once, at the end.
  const std::vector<std::string>& lines() const { return lines_; }
  /// Returns the origin of each line.
  const std::vector<SourceLocation>& places() const { return places_; }
  size_t num_file_lines() const { return comments_.size(); }
  int depth() const { return depth_; }

 private:
  std::string trailing(int line) const;

  std::vector<CommentLine> comments_;
  std::vector<std::string> lines_;
  std::vector<SourceLocation> places_;
  int cursor_ = 1, last_ = 0, depth_ = 0;
};

}  // namespace tycho
