// Maps the keys of another system to lines of a recipe: tables with one row per key, and the walker.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bindings/define/recipe.h"
#include "bindings/define/source_file.h"
#include "bindings/import/comments.h"
#include "bindings/import/document.h"
#include "bindings/import/lua_writer.h"
#include "trainer/base/error.h"

namespace tycho {

class Mapper;

/// A key of the file: its dotted path and its value.
struct DocEntry {
  std::string path;
  const DocNode& node;
};

/// Converts a value to Lua; returns nullopt after adding a problem.
using Convert = std::function<std::optional<std::string>(Mapper&, const DocEntry&)>;

/// The mapping of one key.
struct Row {
  std::string key;
  std::function<void(Mapper&, const DocEntry&)> act;
  std::vector<Row> rows;  // rows of the keys below it, for known_path()
};
using Rows = std::vector<Row>;

// ---- rows ----
/// Maps the key to `target`.
Row to(const char* key, const char* target, Convert convert);
Row to(const char* key, const char* target);
/// Maps a key without effect in Tycho to a comment with the reason.
Row left_out(const char* key, const char* reason);
/// Drops the key, with a note unless its value is one of `neutral` (as text; "null" too), which have no
/// effect.
Row noted(const char* key, std::vector<std::string> neutral, const char* text);
/// Accepts only these values (as text; "null" too), which mean the same in Tycho. Others are a problem that
/// says what to do.
Row only(const char* key, std::vector<std::string> values, const char* what_to_do);
/// Maps a map whose keys have rows of their own and are written in its place.
Row group(const char* key, Rows rows);
/// Marks a key that another row writes.
Row elsewhere(const char* key);
Row by(const char* key, std::function<void(Mapper&, const DocEntry&)> act, Rows rows = {});
/// Returns true when a dotted path leads to a row.
bool known_path(const Rows& rows, std::string_view path);

// ---- conversions ----
/// Copies numbers, words and lists.
std::optional<std::string> as_is(Mapper& mapper, const DocEntry& entry);
/// Converts whole numbers to "16sp".
Convert count_of(const char* unit);
/// Converts Composer's times; a bare number counts `unit`.
Convert duration_in(const char* unit);
/// Converts a list of Composer's times.
Convert durations_in(const char* unit);
/// Translates words; others are a problem.
Convert words(std::vector<std::pair<std::string, std::string>> pairs);

/// A ${...} without a target: a problem of the key that uses it.
class BrokenReference : public Error {
 public:
  BrokenReference(const std::string& place, std::string said)
      : Error(place + said, ExitCode::kRecipe), said_(std::move(said)) {}
  const std::string& said() const { return said_; }

 private:
  std::string said_;
};

class Mapper {
 public:
  /// `place` is the file's name, `text` its content.
  Mapper(DocNode root, std::string text, std::string place);

  /// Sets the function that explains a key without a row, by its path; it returns "" when the key is merely
  /// unknown.
  void explain_unknown(std::function<std::string(const std::string&)> explain) {
    explain_ = std::move(explain);
  }
  const DocNode& root() const { return root_; }
  LuaWriter& out() { return out_; }

  /// Walks the top of the file except `variables`.
  void walk_top(const Rows& rows);
  /// Walks the entries of a map. A key without a row is a problem.
  void walk(const DocEntry& map, const Rows& rows);
  /// Writes `target = lua` as a field or a statement, depending on the context.
  void emit(const DocEntry& entry, const std::string& target, const std::string& lua,
            const std::string& comment = "");
  /// Writes the key as a comment with a reason.
  void remark(const DocEntry& entry, const std::string& reason);
  /// Keeps only the comments of a key that is written elsewhere.
  void keep_comments(const DocEntry& entry);
  /// Adds a note for the user, in addition to the comment in the recipe.
  void note(const DocEntry& entry, const std::string& text);
  /// Adds a problem at the value of the entry, or at its key when `place` is the key.
  void problem(const DocEntry& entry, const std::string& text);
  void problem(const DocEntry& entry, const std::string& text, const SourceLocation& place);
  /// Writes r.target = t.x.kind { rows, last_fields }; `name` needs no row. Without a constructor, writes a
  /// plain table.
  void component(const DocEntry& entry, const std::string& target, const std::string& constructor,
                 const Rows& rows, const std::vector<std::string>& last_fields = {});

  /// Returns the value of a scalar after interpolation: null for an absent one, one line for a list or a map.
  DocScalar value(const DocNode* node);
  std::string text_of(const DocNode* node) { return value(node).text; }
  bool is_null(const DocNode* node) { return node == nullptr || value(node).is(DocScalar::Kind::kNull); }
  /// Returns a scalar as Lua: a literal, a local, or a concatenation of both.
  std::string expression(const DocEntry& entry);
  /// Returns expression(entry) with a text appended.
  std::string expression_with(const DocEntry& entry, const std::string& suffix);
  /// Returns the Lua expression of a text with `prefix` before it.
  std::string expression_after(const std::string& prefix, const DocEntry& entry);
  bool is_interpolated(const DocNode& node) const;

  /// Returns the recipe after everything was walked. Throws Error (kRecipe) that lists all problems.
  std::string finish(const std::string& recipe_name, const std::string& system);
  const std::vector<std::string>& notes() const { return notes_; }
  /// Returns the origin of each line of the recipe.
  const std::vector<SourceLocation>& places() const { return places_; }

 private:
  [[noreturn]] void break_off(const DocEntry& entry, const std::string& said) const;
  void make_absolute(DocNode& node, const std::string& path);
  void inline_structures(DocNode& node, int depth);
  const DocNode* structure_at(const DocEntry& entry, const std::string& path);
  std::string filled_in(const DocEntry& entry, const std::string& path, int depth);
  std::string target_of(const DocEntry& entry, const std::string& reference, int depth);
  DocNode resolved(const DocEntry& entry, int depth);
  std::string reference(const DocEntry& entry, const std::string& path);
  void enter(LuaWriter& writer, const std::string& key) const;
  void close_over_locals();
  void declare(LuaWriter& header, std::set<std::string>& done, const std::string& path, const DocNode& node);
  LuaWriter local_lines();

  DocNode root_;
  std::string text_, place_;
  std::function<std::string(const std::string&)> explain_;
  std::vector<CommentLine> comments_;
  LuaWriter out_;
  NodeBudget budget_;
  std::map<std::string, std::string> locals_;  // path -> name of its local, for targets of references
  std::set<std::string> names_;
  std::vector<SourceProblem> problems_;
  std::vector<std::string> notes_;
  std::vector<SourceLocation> places_;
};

}  // namespace tycho
