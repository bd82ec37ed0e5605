// A config file of another system as a tree, whatever its syntax was.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/define/source_file.h"

namespace tycho {

struct KeyedNode;

struct DocNode {
  enum class Kind { kScalar, kList, kMap };
  Kind kind = Kind::kScalar;
  std::string text;           // of a scalar
  bool is_plain = true;       // of a scalar: not quoted, so it may be a number, true or null
  int line = 0;               // line of its key, or its own in a list, from 1; 0: not from the file
  SourceLocation key, value;  // positions in the file, as far as known; for an alias those of its key
  int last_line = 0;          // of the nodes below it
  int argument = 0;           // position of the argument that set it; 0: none
  std::vector<DocNode> items;
  std::vector<KeyedNode> entries;  // in the order of the file

  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_map() const { return kind == Kind::kMap; }
  bool is_list() const { return kind == Kind::kList; }
  const DocNode* find(std::string_view wanted) const;
  DocNode* find(std::string_view wanted);
  /// Returns the position for error messages: the argument that set it, its value, or its key.
  SourceLocation place() const;
  /// Returns the node at a dotted path, with list indices from 0; null when there is none.
  const DocNode* at(std::string_view path) const;
};

struct KeyedNode {
  std::string key;
  DocNode node;
};

/// The value of a scalar as OmegaConf and PyYAML read it: yes is true, 010 is 8, -.5e-3 is text.
struct DocScalar {
  enum class Kind { kNull, kBool, kInteger, kNumber, kText };
  Kind kind = Kind::kText;
  std::string text;  // "true"/"false"; decimal digits; the number as written; the text
  bool is(Kind k) const { return kind == k; }
};
DocScalar read_scalar(const DocNode& node);

/// Returns a node on one line, for messages.
std::string brief(const DocNode& node);

/// Throws Error (kUnusable) for a problem at a position of a file's text, with its line and a caret; `file`
/// is its name.
[[noreturn]] void fail_in_file(const std::string& file, const std::string& text, const SourceLocation& place,
                               const std::string& message);

/// Parse files of bounded size: 1 MiB, 64 levels, 20,000 nodes with aliases expanded. Throw Error (kUnusable)
/// that names `place`, the file or the argument.
DocNode read_yaml(const std::string& text, const std::string& place);
DocNode read_toml(const std::string& text, const std::string& place);

/// Limits the nodes of one file, since a small text can expand to many.
class NodeBudget {
 public:
  explicit NodeBudget(std::string place) : place_(std::move(place)) {}
  void take(int depth);
  void check_depth(int depth) const;

 private:
  std::string place_;
  int left_ = 20000;
};

}  // namespace tycho
