// From the keys of another system to lines of a recipe: tables of rows, one per key, and what walks them.
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

/// What a value becomes in Lua; none after a problem was noted.
using Convert = std::function<std::optional<std::string>(Mapper&, const DocEntry&)>;

/// What to do with one key.
struct Row {
  std::string key;
  std::function<void(Mapper&, const DocEntry&)> act;
  std::vector<Row> rows;  // keys below it, for known_path()
};
using Rows = std::vector<Row>;

// ---- rows ----
/// The key becomes `target`.
Row to(const char* key, const char* target, Convert convert);
Row to(const char* key, const char* target);
/// The key has no effect here: it stays as a comment with the reason.
Row left_out(const char* key, const char* reason);
/// The key is dropped, with a note unless its value is one of these (as text; "null" too), which have no
/// effect.
Row noted(const char* key, std::vector<std::string> neutral, const char* text);
/// Only these values (as text; "null" too) mean what Tycho does: others are a problem that says what to do.
Row only(const char* key, std::vector<std::string> values, const char* what_to_do);
/// A map whose keys have rows of their own and are written in its place.
Row group(const char* key, Rows rows);
/// Another row writes it.
Row elsewhere(const char* key);
Row by(const char* key, std::function<void(Mapper&, const DocEntry&)> act, Rows rows = {});
/// Whether a dotted path leads to a row.
bool known_path(const Rows& rows, std::string_view path);

// ---- conversions ----
/// Numbers, words and lists as they are.
std::optional<std::string> as_is(Mapper& mapper, const DocEntry& entry);
/// Whole numbers become "16sp".
Convert count_of(const char* unit);
/// Composer's times; a bare number counts `unit`.
Convert duration_in(const char* unit);
/// A list of them.
Convert durations_in(const char* unit);
/// Words for words; others are a problem.
Convert words(std::vector<std::pair<std::string, std::string>> pairs);

/// A ${...} that leads nowhere: a problem of the key that needs it.
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
  /// `place`: the file's name, `text` what it holds.
  Mapper(DocNode root, std::string text, std::string place);

  /// What to say of a key without a row, by its path; "" for nothing more than that it is unknown.
  void explain_unknown(std::function<std::string(const std::string&)> explain) {
    explain_ = std::move(explain);
  }
  const DocNode& root() const { return root_; }
  LuaWriter& out() { return out_; }

  /// Walks the top of the file, all but `variables`.
  void walk_top(const Rows& rows);
  /// Walks the entries of a map. A key without a row is a problem.
  void walk(const DocEntry& map, const Rows& rows);
  /// `target = lua` as a field or a statement, whichever is due.
  void emit(const DocEntry& entry, const std::string& target, const std::string& lua,
            const std::string& comment = "");
  /// The key as a comment with a reason.
  void remark(const DocEntry& entry, const std::string& reason);
  /// A key that is written elsewhere: only its comments stay.
  void keep_comments(const DocEntry& entry);
  /// A note for the user, in addition to the comment in the recipe.
  void note(const DocEntry& entry, const std::string& text);
  /// At the value of the entry; at its key where `place` says so.
  void problem(const DocEntry& entry, const std::string& text);
  void problem(const DocEntry& entry, const std::string& text, const SourcePlace& place);
  /// r.target = t.x.kind { rows, last_fields }; `name` needs no row. Without a constructor: a plain table.
  void component(const DocEntry& entry, const std::string& target, const std::string& constructor,
                 const Rows& rows, const std::vector<std::string>& last_fields = {});

  /// The value of a scalar after interpolation; null for one that is not there, a list or a map on one line.
  DocScalar value(const DocNode* node);
  std::string text_of(const DocNode* node) { return value(node).text; }
  bool is_null(const DocNode* node) { return node == nullptr || value(node).is(DocScalar::Kind::kNull); }
  /// A scalar as Lua: a literal, a local, or text joined from both.
  std::string expression(const DocEntry& entry);
  /// The same with a text behind it.
  std::string expression_with(const DocEntry& entry, const std::string& suffix);
  bool is_interpolated(const DocNode& node) const;

  /// The recipe, after everything was walked. Throws Error (kRecipe) that lists all problems.
  std::string finish(const std::string& recipe_name, const std::string& system);
  const std::vector<std::string>& notes() const { return notes_; }
  /// What each line of the recipe was made of.
  const std::vector<SourcePlace>& places() const { return places_; }

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
  std::map<std::string, std::string> locals_;  // path -> name, of what is referred to
  std::set<std::string> names_;
  std::vector<SourceProblem> problems_;
  std::vector<std::string> notes_;
  std::vector<SourcePlace> places_;
};

}  // namespace tycho
