// Reads YAML with its lines; aliases and merge keys are written out.
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "bindings/import/document.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

class YamlReader {
 public:
  YamlReader(const std::string& text, const std::string& place)
      : text_(text), place_(place), budget_(place) {}

  /// Reads a node. `key` is the position of its key; none for an item of a list.
  DocNode read(const YAML::Node& yaml, SourceLocation key, int depth) {
    budget_.take(depth);
    DocNode node;
    node.key = key.line > 0 ? key : place_of(yaml);
    node.value = value_place(yaml, node.key);
    node.line = node.last_line = node.key.line;
    if (yaml.IsMap()) {
      node.kind = DocNode::Kind::kMap;
      read_entries(yaml, node, depth);
    } else if (yaml.IsSequence()) {
      node.kind = DocNode::Kind::kList;
      for (const YAML::Node& item : yaml) add_item(read(item, {}, depth + 1), node);
    } else if (yaml.IsScalar()) {
      refuse_tag(yaml);
      node.text = yaml.Scalar();
      node.is_plain = yaml.Tag() == "?" || yaml.Tag().empty();
    }
    return node;
  }

 private:
  [[noreturn]] void wrong_at(const YAML::Node& yaml, const std::string& message) const {
    fail_in_file(place_, text_, place_of(yaml), message);
  }
  SourceLocation place_of(const YAML::Node& yaml) const {
    if (yaml.Mark().is_null()) return {};
    SourceLocation place = {.line = yaml.Mark().line + 1, .col = yaml.Mark().column + 1};
    if (!yaml.IsScalar()) return place;
    place.col += anchor_width(static_cast<size_t>(yaml.Mark().pos));
    const bool is_quoted = yaml.Tag() == "!";
    const size_t shown = std::min(yaml.Scalar().find('\n'), yaml.Scalar().size());
    place.len = std::max(1, static_cast<int>(shown) + (is_quoted ? 2 : 0));
    return place;
  }
  /// Returns the width of "&name " before a value, which is part of the value's mark.
  int anchor_width(size_t at) const {
    if (at >= text_.size() || text_[at] != '&') return 0;
    const size_t end =
        text_.find_first_not_of(" \t", std::min(text_.find_first_of(" \t\n", at), text_.size()));
    return end == std::string::npos || text_[end] == '\n' ? 0 : static_cast<int>(end - at);
  }
  /// Returns the position of a value. The mark of an alias is its anchor's, which is before its key.
  SourceLocation value_place(const YAML::Node& yaml, const SourceLocation& key) const {
    const SourceLocation place = place_of(yaml);
    const bool is_alias = std::pair(place.line, place.col) < std::pair(key.line, key.col);
    return is_alias ? key : place;
  }

  void refuse_tag(const YAML::Node& yaml) const {
    const std::string& tag = yaml.Tag();
    const bool is_plain = tag.empty() || tag == "?";
    if (is_plain && (yaml.Scalar() == "=" || yaml.Scalar() == "<<"))
      wrong_at(yaml, fmt::format("{0} has a meaning of its own in YAML; write \"{0}\" for the text",
                                 yaml.Scalar()));
    if (is_plain || tag == "!") return;
    wrong_at(yaml, fmt::format("a value with the tag {}; write the value itself", tag));
  }

  static void add_item(DocNode item, DocNode& node) {
    node.last_line = std::max(node.last_line, item.last_line);
    node.items.push_back(std::move(item));
  }

  void read_entries(const YAML::Node& yaml, DocNode& node, int depth) {
    std::vector<YAML::Node> merged;
    for (const auto& entry : yaml) {
      if (!entry.first.IsScalar()) wrong_at(entry.first, "a key that is not text");
      const std::string key = entry.first.Scalar();
      const bool is_plain = entry.first.Tag() != "!";
      if (is_plain && key == "=") refuse_tag(entry.first);
      if (is_plain && key == "<<") {
        if (entry.second.IsSequence()) {
          for (const YAML::Node& one : entry.second) merged.push_back(one);
        } else {
          merged.push_back(entry.second);
        }
        continue;
      }
      if (node.find(key) != nullptr) wrong_at(entry.first, fmt::format("the key {} appears twice", key));
      DocNode value = read(entry.second, place_of(entry.first), depth + 1);
      node.last_line = std::max(node.last_line, value.last_line);
      node.entries.push_back({key, std::move(value)});
    }
    for (const YAML::Node& one : merged) merge(one, node, depth);
  }

  /// Adds the keys of a merged map that `node` does not set itself. Keeps the lines of the anchor, so that
  /// messages point at the text.
  void merge(const YAML::Node& yaml, DocNode& node, int depth) {
    if (!yaml.IsMap()) wrong_at(yaml, "<< expects a map");
    const int last_line = node.last_line;
    DocNode base = read(yaml, {}, depth + 1);
    for (auto& [key, value] : base.entries) {
      if (node.find(key) == nullptr) node.entries.push_back({key, std::move(value)});
    }
    node.last_line = last_line;
  }

  const std::string &text_, &place_;
  NodeBudget budget_;
};

}  // namespace

DocNode read_yaml(const std::string& text, const std::string& place) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() != 1) {
      fail(ExitCode::kUnusable, "[{}] expected one YAML document, found {}", place, documents.size());
    }
    return YamlReader(text, place).read(documents[0], {}, 0);
  } catch (const YAML::DeepRecursion&) {
    fail(ExitCode::kUnusable, "[{}] is nested more than 64 levels deep", place);
  } catch (const YAML::Exception& error) {
    const SourceLocation at = {.line = error.mark.line + 1, .col = error.mark.column + 1};
    fail_in_file(place, text, at, "not YAML: " + error.msg);
  }
}

}  // namespace tycho
