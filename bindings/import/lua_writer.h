// Writes a recipe line by line, with the comments of the file that it is made from.
#pragma once
#include <string>
#include <vector>

#include "bindings/define/source_file.h"
#include "bindings/import/comments.h"
#include "trainer/base/json.h"

namespace tycho {

/// Text as a Lua string.
std::string lua_quoted(const std::string& text);

/// A name that Lua takes for a local: "data_local" for "data-local", "end_" for "end".
std::string lua_name(const std::string& text);

/// A name as a key of a Lua table: near, ["near-again"], ["repeat"].
std::string lua_key(const std::string& name);

/// A dotted path behind a variable, as in r.eval_data["end"].split for "r" and "eval_data.end.split".
std::string lua_path(const std::string& variable, const std::string& path);

/// Fields that differ from `usual`, as the inside of a Lua table; "kind" is none of them.
std::string lua_fields(const Json& fields, const Json& usual);

class LuaWriter {
 public:
  explicit LuaWriter(std::vector<CommentLine> comments) : comments_(std::move(comments)) {}

  /// Comments of lines before `first` are not written any more, until `last` is left.
  void enter(int first, int last);
  /// Writes the comments between what was written last and `line`, which lie in the range entered.
  void comments_before(int line);
  /// One statement or field, and the comment behind `line` of the file (0: none) or `comment`. `place`: what
  /// it was made of.
  void write(const std::string& text, int line, const std::string& comment = "",
             const SourcePlace& place = {});
  /// The comment behind `line` of the file, as a line of its own.
  void write_comment(int line);
  /// Opens and closes a table; what is between is indented.
  void open(const std::string& text, int line, const SourcePlace& place);
  void close(const std::string& text);
  /// Every line; call it once, at the end.
  const std::vector<std::string>& lines() const { return lines_; }
  /// What each of them was made of.
  const std::vector<SourcePlace>& places() const { return places_; }
  size_t num_file_lines() const { return comments_.size(); }
  int depth() const { return depth_; }

 private:
  std::string trailing(int line) const;

  std::vector<CommentLine> comments_;
  std::vector<std::string> lines_;
  std::vector<SourcePlace> places_;
  int cursor_ = 1, last_ = 0, depth_ = 0;
};

}  // namespace tycho
