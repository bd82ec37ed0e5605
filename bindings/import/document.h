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
  std::string text;        // of a scalar
  bool is_plain = true;    // of a scalar: without quotes, so that it may be a number, true or null
  int line = 0;            // of its key, or its own in a list, from 1; 0: it is not from the file
  SourcePlace key, value;  // in the file, as far as they are known; those of an alias are its key's
  int last_line = 0;       // of what is below it
  int argument = 0;        // position of the argument that set it; 0: none
  std::vector<DocNode> items;
  std::vector<KeyedNode> entries;  // in the order of the file

  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_map() const { return kind == Kind::kMap; }
  bool is_list() const { return kind == Kind::kList; }
  const DocNode* find(std::string_view key) const;
  DocNode* find(std::string_view key);
  /// Where to point for what is wrong with it: at the argument that set it, at its value, or at its key.
  SourcePlace place() const;
  /// What lies at a dotted path, in which items of lists count from 0; or null.
  const DocNode* at(std::string_view path) const;
};

struct KeyedNode {
  std::string key;
  DocNode node;
};

/// What a scalar says, as OmegaConf and PyYAML read it: yes is true, 010 is 8, -.5e-3 is text.
struct DocScalar {
  enum class Kind { kNull, kBool, kInteger, kNumber, kText };
  Kind kind = Kind::kText;
  std::string text;  // "true"/"false"; decimal digits; the number as it was written; the text
  bool is(Kind k) const { return kind == k; }
};
DocScalar read_scalar(const DocNode& node);

/// A node on one line, for messages.
std::string brief(const DocNode& node);

/// Throws Error (kUnusable) for what is wrong at a place of a file's text, with its line and a caret; `file`
/// is its name.
[[noreturn]] void fail_in_file(const std::string& file, const std::string& text, const SourcePlace& place,
                               const std::string& message);

/// Parse files of bounded size: 1 MiB, 64 levels, 20,000 nodes with aliases written out. Throw Error
/// (kUnusable) that names `place`, the file or the argument.
DocNode read_yaml(const std::string& text, const std::string& place);
DocNode read_toml(const std::string& text, const std::string& place);

/// Nodes of one file, against what a small text can unfold to.
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
